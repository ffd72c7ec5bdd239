"""Headrace: offset-managed source tasks, driven by Spark, exactly once.

This is the front door. Importing it is cheap: no Spark, no boto3 and no confluent_kafka come with it; they are
imported when something that needs them is used.

If you are here to read the code, follow the data: `headrace.framework` lists its files in that order.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
