"""What preflight finds: errors and warnings."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Findings:
    """Messages for the user. With any of `errors` a problem is not solved."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __add__(self, other: "Findings") -> "Findings":
        """Both, each message once."""
        return Findings(
            tuple(dict.fromkeys(self.errors + other.errors)),
            tuple(dict.fromkeys(self.warnings + other.warnings)),
        )


def listing(names: tuple[str, ...]) -> str:
    """'u', 'v' and 'w'."""
    quoted = [f"'{n}'" for n in names]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
