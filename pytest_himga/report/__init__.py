"""NUMBERS->PEOPLE: the failure text, the terminal summary, the files of a run."""
