"""What `file.name.template` finds in names, as Aiven's connectors do, and what it refuses."""

import pickle

import pytest

from headrace.framework.errors import ConfigError
from headrace.framework.naming import NameParts, NameTemplate


@pytest.mark.parametrize(
    ("template", "name", "expected"),
    [
        ("{{topic}}-{{partition}}-{{start_offset}}.txt", "logs2-1-1-0001.txt", NameParts("logs2-1", 1, 1)),
        ("{{partition}}-{{start_offset}}-{{topic}}.txt", "logs2-1-logs2.txt", NameParts("logs2", 2, 1)),
        ("{{topic}}{{partition}}-{{start_offset}}", "89521-00112.gz", NameParts("8952", 1, 112)),
        (
            "{{topic}}-{{partition}}-{{start_offset}}",
            "t-0-9223372036854775807",
            NameParts("t", 0, 9223372036854775807),
        ),
        (
            "{{topic}}-{{partition}}-{{start_offset}}",
            "22-10-12/customer-topic-1-1734445664111.txt",
            NameParts("22", 10, 12),
        ),
        ("bucket/topics/{{topic}}/{{partition}}/.*$", "bucket/topics/logs/5/a b.gz", NameParts("logs", 5)),
        ("topics/{{topic}}/partition={{partition}}/.*$", "topics/logs/partition=5/x", NameParts("logs", 5)),
        ("logs-{{partition}}.txt", "logs-0002.txt", NameParts(partition=2)),
        ("{{timestamp}}/{{timestamp}}/{{topic}}", "2024/11/logs", NameParts("logs")),
        (
            "{{timestamp:unit=yyyy}}-{{timestamp:unit=MM}}-{{timestamp:unit=dd}}T{{timestamp:unit=HH}}/{{topic}}",
            "2024-11-05T23/logs",
            NameParts("logs"),
        ),
        ("{{timestamp:unit=YYYY}}{{partition}}", "20247", NameParts(partition=7)),
        (
            "{{topic}}-{{partition:padding=true}}-{{start_offset:padding=true}}.gz",
            "logs-0000000003-00000000000000000042.gz",
            NameParts("logs", 3, 42),
        ),
        ("{{ topic }}-{{ partition : padding = true }}", "logs-03", NameParts("logs", 3)),
        (".*", "any name\twhatever", NameParts()),
        ("*.gz", "a.gz", NameParts()),
        ("part.{{partition}}", "partX7", NameParts(partition=7)),
        (r"\w{3}-(a|b)-{{partition}}", "xyz-b-7", NameParts(partition=7)),
    ],
)
def test_names_that_match(template, name, expected):
    """A template is searched for anywhere in a name, its literals are a regular expression, and the topic is greedy."""
    assert NameTemplate.parse(template).match(name) == expected


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{topic}}-{{partition}}-{{start_offset}}", "logs-one-0001"),
        ("prefix/{{topic}}-{{partition}}", "other/logs-1"),
        ("{{topic}}-{{partition}}-{{start_offset}}", "logs11"),
        ("{{timestamp:unit=yyyy}}/{{topic}}", "24/logs"),
        ("logs-{{partition}}", "logs-٣"),
        ("*.gz", "a.txt"),
    ],
)
def test_names_that_do_not_match(template, name):
    """A name in which the template is not found says nothing, which is not the same as saying nothing in particular."""
    assert NameTemplate.parse(template).match(name) is None


@pytest.mark.parametrize(
    ("template", "messages", "suggestion"),
    [
        ("", ["is empty"], None),
        ("  ", ["is empty"], None),
        ("{{topik}}", ["has the unknown variable {{topik}}; known are {{topic}}, {{partition}}"], "topic"),
        ("{{key}}-{{foo}}", ["has the unknown variables {{key}}, {{foo}};"], None),
        ("{{topic}}-{{topic}}", ["has {{topic}} more than once; only {{timestamp}} may be repeated"], None),
        ("{{partition}}{{partition:padding=true}}", ["has {{partition}} more than once"], None),
        ("{{partition:paddin=true}}", ["has {{partition:paddin=true}}, whose parameter is unknown"], None),
        ("{{partition:padding=maybe}}", ["whose parameter is unknown"], None),
        ("{{topic:padding=true}}", ["whose parameter is unknown"], None),
        ("{{timestamp:unit=ss}}", ["whose parameter is unknown"], None),
        ("a(b", ["is not a regular expression"], None),
        (".well-known/acme-challenge/{{topic}}", ["begins with .well-known/acme-challenge"], None),
        (
            "{{a}}{{topic}}{{topic}}{{timestamp:unit=x}}",
            ["has the unknown variable {{a}}", "has {{topic}} more than once", "has {{timestamp:unit=x}}"],
            None,
        ),
    ],
)
def test_templates_that_are_refused(template, messages, suggestion):
    """Every fault of a template is named at once, with the key, the value and what would be right."""
    with pytest.raises(ConfigError) as caught:
        NameTemplate.parse(template)

    faults = caught.value.faults
    assert all(message in fault.message for fault, message in zip(faults, messages, strict=True))
    assert {(fault.key, fault.value) for fault in faults} == {("file.name.template", template)}
    assert faults[0].suggestion == suggestion


def test_a_template_says_which_variables_it_has():
    """Whoever needs a variable can ask whether the template has it, without a name at hand."""
    assert NameTemplate.parse("{{topic}}/{{partition:padding=true}}").variables == {"topic", "partition"}
    assert NameTemplate.parse(".*").variables == frozenset()


def test_a_template_travels_to_other_processes():
    """A template that was shipped to an executor finds the same there."""
    template = NameTemplate.parse("{{topic}}-{{partition}}")

    assert pickle.loads(pickle.dumps(template)).match("logs-3") == NameParts("logs", 3)  # noqa: S301 - our own bytes
