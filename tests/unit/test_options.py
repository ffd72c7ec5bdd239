"""What the machinery of options promises, on a configuration of its own."""

import pickle
from collections.abc import Iterable, Mapping
from typing import ClassVar

import attrs
import pytest

from headrace.framework.config import Secret, derived, integer, option, secret, text
from headrace.framework.errors import ConfigError, Fault
from headrace.framework.options import Options


@attrs.frozen(kw_only=True)
class Well(Options):
    INERT: ClassVar[Mapping[str, str]] = {"well.colour": "it is dark down there", "stone.*": "stones are not counted"}
    NOT_YET: ClassVar[Mapping[str, str]] = {"well.roof": "there is no roof so far", "well.pump.*": "there is no pump"}
    NEUTRAL: ClassVar[Mapping[str, str]] = {"well.roof": "false"}
    PASSED_ON: ClassVar[tuple[str, ...]] = ("bucket.",)

    place: str = option("well.place", text(), doc="Where it is.", aliases=("well_place",))
    depth: int = option("well.depth", integer(at_least=1, at_most=100), default=10, doc="How deep.")
    rope: int = option("well.rope", integer(), default=derived(lambda well: well.depth + 1, "a bit more"), doc="Rope.")
    word: Secret | None = option("well.password", secret(), default=None, doc="What opens it.")
    keeper: str | None = option("well.keeper", text(), default=None, doc="Who keeps it.", over=("keeper",))

    def validate(self) -> Iterable[Fault]:
        yield from super().validate()
        if self.rope < self.depth:
            yield self.fault("well.rope", "must be longer than the well is deep")
        if self.keeper is None and self.depth > 90:
            yield self.fault("well.keeper", "is needed where it is deep")
        if self.place == "nowhere":
            yield self.fault("well.place", "must be somewhere")


@attrs.frozen(kw_only=True)
class Fountain(Well):
    NOT_YET: ClassVar[Mapping[str, str]] = {"well.colour": "fountains will have lamps"}
    INERT: ClassVar[Mapping[str, str]] = {"well.pump.size": "a fountain has its own pump"}

    roof: str = option("well.roof", text(), default="none", doc="A roof at last.")


class OpenWell(Well):
    @classmethod
    def is_open(cls):
        return True


def faults(kind, props):
    """The faults of a map as (key, value, suggestion), and their messages by key."""
    with pytest.raises(ConfigError) as caught:
        kind.from_props(props)
    found = caught.value.faults
    return [(fault.key, fault.value, fault.suggestion) for fault in found], {
        fault.key: fault.message for fault in found
    }


class TestReading:
    def test_values_are_what_the_parsers_make_of_them(self):
        """Each field holds its parser's value, trimmed first, and its default where nothing is said."""
        well = Well.from_props({"well.place": " garden ", "well.depth": "7"})
        assert (well.place, well.depth, well.rope, well.word, well.keeper) == ("garden", 7, 8, None, None)

    def test_numbers_and_booleans_are_taken_for_texts(self):
        """What JSON writes as a number or a boolean is read like its text, and null like nothing at all."""
        well = Well.from_props({"well.place": True, "well.depth": 7, "well.keeper": None})
        assert (well.place, well.depth, well.keeper) == ("true", 7, None)

    def test_another_key_that_wins(self):
        """A key in `over` goes before the option's own, which then has no effect, and says so."""
        props = {"well.place": "x", "well.keeper": "low", "keeper": "high"}
        assert Well.from_props(props).keeper == "high"
        assert Well.warnings_for(props) == ["well.keeper has no effect here: keeper wins over it"]

    def test_an_old_name_works_with_a_warning(self):
        """An alias sets its option and warns; beside the option's own key it has no effect."""
        assert Well.from_props({"well_place": "x"}).place == "x"
        assert Well.warnings_for({"well_place": "x"}) == ["well_place is an old name: write well.place"]
        both = {"well_place": "old", "well.place": "new"}
        assert Well.from_props(both).place == "new"
        assert Well.warnings_for(both) == ["well_place has no effect here: well.place wins over it"]

    def test_the_map_is_kept_as_it_came(self):
        """`props` is the given map, references unresolved; the configuration travels through pickle."""
        well = Well.from_props({"well.place": " x ", "bucket.separator": " "})
        assert well.props == {"well.place": " x ", "bucket.separator": " "}
        assert (well.value("bucket.separator"), well.under("bucket.")) == (" ", {"separator": " "})
        assert pickle.loads(pickle.dumps(well)) == well  # noqa: S301 - our own bytes


class TestFaults:
    def test_all_at_once_in_the_order_of_the_map(self):
        """One error holds every fault: missing, unreadable, unknown, against a rule, not working yet."""
        found, messages = faults(
            Well, {"well.deth": "3", "well.rope": "2", "well.pump.size": "1", "well.keeper": "", "other": "x"}
        )
        assert found == [
            ("well.place", None, None),
            ("well.deth", "3", "well.depth"),
            ("well.rope", "2", None),
            ("well.pump.size", "1", None),
            ("well.keeper", "", None),
            ("other", "x", None),
        ]
        assert messages["well.place"] == "is required: Where it is."
        assert messages["well.rope"] == "must be longer than the well is deep"
        assert messages["well.pump.size"] == "not yet: there is no pump"

    def test_one_fault_a_key(self):
        """A rule says nothing more about a key that could not be read."""
        found, messages = faults(Well, {"well.place": "nowhere", "well.depth": "95", "well.keeper": ""})
        assert found == [("well.place", "nowhere", None), ("well.keeper", "", None)]
        assert messages["well.keeper"] == "must not be empty"

    def test_what_is_no_text_is_a_fault(self):
        """A nested value, and a key that is no text, are faults, not crashes."""
        found, messages = faults(Well, {"well.place": ["a"], 7: "x", "": "y"})
        assert sorted(key for key, _, _ in found) == ["", "7", "well.place"]
        assert messages["well.place"] == "must be a text, not list"

    def test_an_attribute_error_of_a_rule_is_not_hidden(self):
        """Only the absence of a required option ends the rules in silence; a rule's own mistake comes out."""

        @attrs.frozen(kw_only=True)
        class Broken(Well):
            def validate(self):
                yield self.fault("well.place", self.no_such_thing)

        with pytest.raises(AttributeError, match="no_such_thing"):
            Broken.from_props({"well.place": "x"})


class TestKnownKeys:
    def test_without_effect(self):
        """A key of `INERT` is a warning with its reason, by its whole name or by its beginning."""
        props = {"well.place": "x", "well.colour": "red", "stone.count": "4"}
        Well.from_props(props)
        assert Well.warnings_for(props) == [
            "well.colour has no effect here: it is dark down there",
            "stone.count has no effect here: stones are not counted",
        ]

    @pytest.mark.parametrize("value", ["", " ", "false", " FALSE"])
    def test_not_yet_and_not_asked_for(self, value):
        """A key of `NOT_YET` passes with the value that asks for nothing."""
        assert Well.from_props({"well.place": "x", "well.roof": value}).depth == 10

    def test_the_nearest_class_decides(self):
        """A subclass may make a key work, or say another thing of it than its base class."""
        assert Fountain.from_props({"well.place": "x", "well.roof": "slate"}).roof == "slate"
        found, _ = faults(Fountain, {"well.place": "x", "well.colour": "red", "well.pump.size": "3"})
        assert found == [("well.colour", "red", None)]
        assert Fountain.warnings_for({"well.pump.size": "3"}) == [
            "well.pump.size has no effect here: a fountain has its own pump"
        ]

    def test_what_others_read(self):
        """Keys under a beginning in `PASSED_ON` pass."""
        assert Well.from_props({"well.place": "x", "bucket.anything": "y"}).place == "x"

    def test_open(self):
        """An open class lets keys pass that nobody declared, but not a slip in a known one."""
        assert OpenWell.from_props({"well.place": "x", "numbers.count": "4"}).value("numbers.count") == "4"
        found, _ = faults(OpenWell, {"well.place": "x", "numbers.count": "4", "well.dpeth": "4"})
        assert found == [("well.dpeth", "4", "well.depth")]

    def test_a_slip_under_a_known_beginning(self):
        """A slip in a known key is found though a beginning of it would let it pass."""

        @attrs.frozen(kw_only=True)
        class Wall(Well):
            height: int = option("stone.height", integer(), default=1, doc="How high.")

        found, _ = faults(Wall, {"well.place": "x", "stone.hieght": "4"})
        assert found == [("stone.hieght", "4", "stone.height")]


class TestSecrets:
    def test_never_printed(self):
        """A secret is in no repr and in no fault, and `reveal` gives it."""
        well = Well.from_props({"well.place": "x", "well.password": "hunter2", "bucket.api.key": "k4711"})
        assert well.word.reveal() == "hunter2"
        for shown in (repr(well), str(well), repr(well.word), f"{well.word}"):
            assert "hunter2" not in shown
            assert "k4711" not in shown

    def test_masked_in_faults(self):
        """The value of a mistyped secret key is hidden, whatever it was typed as."""
        found, _ = faults(Well, {"well.place": "x", "well.pasword": "hunter2", "my.token": "t", "well.password": ""})
        assert found == [
            ("well.pasword", "[hidden]", "well.password"),
            ("my.token", "[hidden]", None),
            ("well.password", "[hidden]", None),
        ]

    def test_references_are_late_and_never_printed(self, monkeypatch, tmp_path):
        """References are resolved when a value is read; what is printed is the reference."""
        (tmp_path / "s.properties").write_text("depth=77\nword=hunter2\n")
        monkeypatch.setenv("WELL_PLACE", "cellar")
        props = {
            "well.place": "the ${env:WELL_PLACE}",
            "well.depth": f"${{file:{tmp_path}/s.properties:depth}}",
            "well.password": f"${{file:{tmp_path}/s.properties:word}}",
            "bucket.of": "${env:WELL_PLACE}",
        }
        well = Well.from_props(props)
        assert (well.place, well.depth, well.word.reveal()) == ("the cellar", 77, "hunter2")
        assert well.value("bucket.of") == "cellar"
        assert well.value("bucket.none", "wood") == "wood"
        assert "cellar" not in repr(well)
        assert well.props == props

    def test_a_bad_value_behind_a_reference(self, monkeypatch):
        """The fault shows the reference, not what it stands for."""
        monkeypatch.setenv("WELL_DEPTH", "deep")
        with pytest.raises(ConfigError) as caught:
            Well.from_props({"well.place": "x", "well.depth": "${env:WELL_DEPTH}"})
        assert [fault.value for fault in caught.value.faults] == ["${env:WELL_DEPTH}"]
        assert "deep" not in str(caught.value)

    def test_a_reference_that_leads_nowhere(self):
        """It is a fault of its key, beside all others."""
        found, messages = faults(Well, {"well.place": "${env:NOT_SET_ANYWHERE}", "well.depth": "${vault:a:b}"})
        assert [key for key, _, _ in found] == ["well.place", "well.depth"]
        assert "NOT_SET_ANYWHERE" in messages["well.place"]
        assert "vault" in messages["well.depth"]
        with pytest.raises(ConfigError, match=r"bucket\.of.*NOT_SET"):
            Well.from_props({"well.place": "x", "bucket.of": "${env:NOT_SET}"}).value("bucket.of")
