"""Man pages, and completion for bash, zsh and fish, of the programs that are named.

    python3 man_and_completion.py FOLDER PROGRAM...

`PROGRAM --describe` prints the commands and options of a program (cli/common/describe.cpp). The files have the same
places in FOLDER as in share/. If `quoin X` starts a program quoin-X, and that is named too, the two have one page and
the same options.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import time


class Option:
    def __init__(self, described):
        self.names = described["names"].split(",")
        self.positional = described["positional"]
        self.value = described["value"]
        self.description = described["description"]
        self.group = described["group"]
        self.required = described["required"]
        self.many = described["many"]
        self.choices = described["choices"].split()
        self.summary = summary(self.description)
        # what completes the value: names, or the files or folders of the shell
        self.files = not self.choices and self.value in ("FILE", "TEXT")
        self.folders = not self.choices and self.value == "DIR"


class Command:
    def __init__(self, described, programs, path=""):
        self.name = described["name"]
        self.path = f"{path} {self.name}".strip()
        self.page = self.path.replace(" ", "-")
        self.description = described["description"]
        self.summary = summary(self.description)
        self.own_page = bool(path) and self.page in programs  # the page of the program quoin-NAME
        described = programs.get(self.page, described)
        self.footer = described["footer"]
        options = [Option(option) for option in described["options"]]
        self.arguments = [option for option in options if option.positional]
        self.options = [option for option in options if not option.positional]
        self.commands = [Command(command, programs, self.path) for command in described["commands"]]

    def all(self, own_pages=True):
        """This command and those below it, with or without the commands that have pages of their own."""
        return [self] + [below for command in self.commands if own_pages or not command.own_page
                         for below in command.all(own_pages)]


def summary(description):
    """The first sentence, without the words in parentheses."""
    text = re.sub(r" \([^()]*[a-z]{3}[^()]*(\([^()]*\)[^()]*)*\)", "", " ".join(description.split("\n\n")[0].split()))
    return re.split(r"[.;] ", text)[0].rstrip(".")


# ---- man -------------------------------------------------------------------------------------------------------------


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))


def paragraphs(text):
    """Filled paragraphs, except those whose lines are laid out by spaces."""
    lines = []
    for paragraph in text.strip("\n").split("\n\n"):
        if "  " in paragraph:
            lines += [".PP", ".nf", roff(paragraph), ".fi"]
        else:
            lines += [".PP", roff(paragraph)]
    return lines


def man_page(command, version, programs):
    date = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    usage = [f".B {roff(command.path)}"]
    usage += ["[OPTIONS]"] if command.options else []
    usage += ["COMMAND ..."] if command.commands else []
    for argument in command.arguments:
        name = roff(argument.names[0]) + (" ..." if argument.many else "")
        usage.append(name if argument.required else f"[{name}]")
    lines = [f'.TH "{roff(command.page.upper())}" 1 {date} "{version}" "Quoin"', ".SH NAME"]
    lines += [f"{roff(command.page)} \\- {roff(command.summary)}", ".SH SYNOPSIS", *usage]
    lines += [".SH DESCRIPTION", *paragraphs(command.description)[1:]]
    if command.commands:
        lines.append(".SH COMMANDS")
        for below in command.commands:
            lines += [".TP", f".BR {roff(below.page)} (1)", roff(below.summary)]
    if command.arguments:
        lines.append(".SH ARGUMENTS")
        for argument in command.arguments:
            lines += [".TP", f".I {roff(argument.names[0])}", roff(argument.description)]
    groups = dict.fromkeys(option.group for option in command.options)
    for number, group in enumerate(groups):
        lines.append(".SH OPTIONS" if number == 0 else f'.SS "{roff(group)}"')
        for option in command.options:
            if option.group == group:
                names = ", ".join(f"\\fB{roff(name)}\\fR" for name in option.names)
                value = f" \\fI{roff(option.value)}\\fR" if option.value else ""
                lines += [".TP", names + value, roff(option.description)]
    sections = {"EXAMPLES": [], "NOTES": [], "EXIT STATUS": []}
    for paragraph in filter(None, command.footer.strip().split("\n\n")):
        label, colon, rest = paragraph.partition(":")
        if colon and label in ("Example", "Try"):
            sections["EXAMPLES"].append("\n".join(line.strip() for line in rest.split("\n")) + "  ")
        elif colon and label == "Exit codes":
            sections["EXIT STATUS"].append(rest.strip())
        else:
            sections["NOTES"].append(paragraph)
    for title, texts in sections.items():
        if texts:
            lines += [f".SH {title}", *paragraphs("\n\n".join(texts))[1:]]
    related = [page for page in programs if page != command.page]
    if " " in command.path:
        related = [command.path.rpartition(" ")[0].replace(" ", "-")]
    if related:
        lines += [".SH SEE ALSO", ",\n".join(f".BR {roff(page)} (1)" for page in related)]
    return "\n".join(lines) + "\n"


# ---- bash ------------------------------------------------------------------------------------------------------------


def bash_values(option):
    if option.choices:
        return "words=" + shlex.quote(" ".join(option.choices))
    return "kind=file" if option.files else "kind=directory" if option.folders else ":"


def bash(program):
    function = "_" + program.name.replace("-", "_")
    commands, values, words = [], [], []
    for command in program.all():
        for below in command.commands:
            commands.append(f'            "{command.path} {below.name}") path="$path $word" ;;')
        for option in command.options:
            if option.value:
                names = " | ".join(f'"{command.path} {name}"' for name in option.names)
                values.append(f"        {names}) {bash_values(option)} ;;")
        options = " ".join(name for option in command.options for name in option.names)
        arguments = [name for argument in command.arguments for name in argument.choices]
        arguments += [below.name for below in command.commands]
        kind = " kind=file" if any(argument.files for argument in command.arguments) else ""
        offered = f"options={shlex.quote(options)} words={shlex.quote(' '.join(arguments))}{kind}"
        words.append(f'                "{command.path}") {offered} ;;')
    newline = "\n"
    return f"""# bash completion of {program.name}, made from its options by its build
{function}() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local path={program.name} options= words= kind= word
    # bash splits --option=value into three words
    if [[ $current == "=" ]]; then
        current=
    elif [[ $previous == "=" ]]; then
        previous=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD - 1}}"; do
        case "$path $word" in
{newline.join(commands) or "            *) ;;"}
        esac
    done
    case "$path $previous" in
{newline.join(values)}
        *)
            case "$path" in
{newline.join(words)}
            esac
            if [[ $current == -* ]]; then words=$options kind=; fi
            ;;
    esac
    mapfile -t COMPREPLY < <(
        compgen -W "$words" -- "$current"
        if [[ $kind ]]; then compgen -A "$kind" -- "$current"; fi
    )
    if [[ $kind ]]; then compopt -o filenames; fi
}}
complete -F {function} {program.name}
"""


# ---- zsh -------------------------------------------------------------------------------------------------------------


def zsh_text(text):
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh_action(option):
    if option.choices:
        return "(" + " ".join(option.choices) + ")"
    return "_files" if option.files else "_files -/" if option.folders else " "


def zsh(program):
    functions = []
    for command in reversed(program.all()):
        specs = []
        for option in command.options:
            for name in option.names:
                value = f":{zsh_text(option.value)}:{zsh_action(option)}" if option.value else ""
                equals = "=" if option.value and name.startswith("--") else ""
                specs.append(f"{name}{equals}[{zsh_text(option.summary)}]{value}")
        function = "_" + command.page
        lines = [f"{function}() {{"]
        if command.commands:
            specs += ["1:command:->command", "*::argument:->argument"]
        else:
            for number, argument in enumerate(command.arguments, 1):
                place = "*" if argument.many else str(number)
                specs.append(f"{place}:{zsh_text(argument.names[0])}:{zsh_action(argument)}")
        if command.commands:
            lines.append("    local state line")
        lines.append("    _arguments -C \\\n        " + " \\\n        ".join(map(shlex.quote, specs)))
        if command.commands:
            described = [shlex.quote(f"{zsh_text(below.name)}:{below.summary}") for below in command.commands]
            lines += ["    case $state in", "        command)", "            local -a commands=("]
            lines += [f"                {one}" for one in described]
            lines += ["            )", "            _describe command commands"]
            for argument in command.arguments:
                if argument.choices:
                    lines.append("            compadd " + " ".join(argument.choices))
                elif argument.files or argument.folders:
                    lines.append("            " + zsh_action(argument))
            lines += ["            ;;", "        argument)", "            case $line[1] in"]
            lines += [f"                {below.name}) _{below.page} ;;" for below in command.commands]
            lines += ["            esac", "            ;;", "    esac"]
        functions.append("\n".join(lines + ["}"]))
    head = f"#compdef {program.name}\n# zsh completion of {program.name}, made from its options by its build\n"
    return head + "\n".join(functions) + f'\n_{program.page} "$@"\n'


# ---- fish ------------------------------------------------------------------------------------------------------------


def fish(program):
    lines = [f"# fish completion of {program.name}, made from its options by its build", f"complete -c {program.name} -f"]
    for command in program.all():
        seen = [f"__fish_seen_subcommand_from {name}" for name in command.path.split()[1:]]
        if command.commands:
            seen.append("not __fish_seen_subcommand_from " + " ".join(below.name for below in command.commands))
        here = f"complete -c {program.name}" + (f" -n {shlex.quote('; and '.join(seen))}" if seen else "")
        for below in command.commands:
            lines.append(f"{here} -a {below.name} -d {fish_text(below.summary)}")
        for argument in command.arguments:
            lines += [f"{here} {fish_values(argument)}".rstrip()] if fish_values(argument) else []
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            values = (" " + (fish_values(option) or "-x")) if option.value else ""
            lines.append(f"{here} {names}{values.replace(' -a', ' -x -a')} -d {fish_text(option.summary)}")
    return "\n".join(lines) + "\n"


def fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_values(option):
    if option.choices:
        return f"-a {fish_text(' '.join(option.choices))}"
    return "-rF" if option.files else "-a '(__fish_complete_directories)'" if option.folders else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the files go")
    parser.add_argument("programs", nargs="+", help="paths of the programs")
    arguments = parser.parse_args()
    folder = arguments.folder
    described, versions = {}, {}
    for program in arguments.programs:
        output = subprocess.run([program, "--describe"], check=True, capture_output=True, text=True, encoding="utf-8").stdout
        name = pathlib.Path(program).name
        described[name] = dict(json.loads(output), name=name)
        versions[name] = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()

    def write(place, text):
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    for name in described:
        program = Command(described[name], described)
        write(f"bash-completion/completions/{name}", bash(program))
        write(f"zsh/site-functions/_{name}", zsh(program))
        write(f"fish/vendor_completions.d/{name}.fish", fish(program))
        for command in program.all(own_pages=False):
            write(f"man/man1/{command.page}.1", man_page(command, versions[name], described))


if __name__ == "__main__":
    main()
