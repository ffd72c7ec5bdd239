"""The same loop without Spark: on processes of this machine, or on threads of this one."""
