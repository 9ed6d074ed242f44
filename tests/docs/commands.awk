# commands.awk -- FILES OPTIONS COMMANDS: prints errors in the commands of documents.
#
# OPTIONS has a line for each "tenon-COMMAND" and "program-COMMAND", and for each of these (or "tenon") with an option.
# An option of a script of the repository is printed as "script PLACE SCRIPT OPTION"; the caller searches the script for it.
FNR == 1 { part++ }
part == 1 { there[$0] = 1; next }
part == 2 { known[$0] = 1; next }

{
    place = $1 ":" $2
    starts = 0                                   # whether the command starts another command, so that any word can be that command
    for (i = 3; i <= NF; i++) {
        word = $i
        if (word ~ /^[A-Z_a-z][A-Z_a-z0-9]*=/) continue
        if (word ~ /^(mpirun|mpiexec|srun|sbatch|env|time|timeout|sudo|exec|nohup|taskset|numactl|bash|sh|if|then|do|while|!|docker)$/) starts = 1
        if (word ~ /(^|\/)tenon$/) { tenon(i + 1); break }
        sub(/^\.\//, "", word)
        if ($i ~ /\// && word in there) { script(word, i + 1); break }
        if ($i ~ /^(\.\/|build\/)[A-Za-z0-9_-]+$/) { program(i + 1); break }
        if (!starts) break
    }
}
END { print "ok " n + 0 }

# The name of an option without its value; "" for any other word.
function option(word)
{
    if (word !~ /^--?[A-Za-z]/) return ""
    sub(/=.*/, "", word)
    return word
}

function tenon(i,    command, o)
{
    command = $i
    if (option(command) != "") {
        if (("tenon " option(command)) in known) n++; else print place ": tenon has no option " command
        return
    }
    if (command == "" || command ~ /^[A-Z]/) return
    if (!(("tenon-" command) in known)) { print place ": tenon has no command '" command "'"; return }
    for (i++; i <= NF; i++) {
        if ($i == "--") { if (command == "run") program(i + 1); return }
        if ($i ~ /^models\/.*\.tn$/ && !($i in there)) print place ": there is no " $i
        o = option($i)
        if (o == "") continue
        if (("tenon-" command " " o) in known) n++; else print place ": tenon " command " has no option " o
    }
}

function program(i,    command, o)
{
    command = "train"
    if (i <= NF && $i ~ /^[a-z][a-z]*$/) {
        command = $i
        if (!(("program-" command) in known)) { print place ": a program has no command '" command "'"; return }
    } else if ($i ~ /^[A-Z]/)
        return
    for (; i <= NF; i++) {
        o = option($i)
        if (o == "") continue
        if (("program-" command " " o) in known) n++; else print place ": a program's command " command " has no option " o
    }
}

function script(name, i,    o)
{
    for (; i <= NF; i++) {
        o = option($i)
        if (o != "") print "script\t" place "\t" name "\t" o
    }
}
