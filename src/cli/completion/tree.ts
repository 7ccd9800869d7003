import type { Argument, Command, Option } from 'commander'

/** Kind of value that a command or an option takes. */
export type Takes =
  | { readonly kind: 'nothing' | 'text' | 'file' | 'folder' | 'job' | 'webhook' }
  | { readonly kind: 'words'; readonly words: readonly string[] }

export type Flag = {
  /** Short and long name, such as `-o` and `--output`. */
  readonly names: readonly string[]
  readonly help: string
  readonly takes: Takes
}

/** One command with its subcommands, flags and argument. */
export type Branch = {
  /** As typed, such as `ev jobs show`. */
  readonly path: string
  readonly commands: readonly { readonly name: string; readonly help: string }[]
  readonly flags: readonly Flag[]
  readonly argument: Takes
}

/** Returns a command of commander and all its subcommands. */
export function branches(
  command: Command,
  above = '',
  alternatives: readonly string[] = [],
): Branch[] {
  const path = `${above}${command.name()}`
  const help = command.createHelp()
  const below = help.visibleCommands(command)
  const names = below.map(one => one.name())
  const branch: Branch = {
    path,
    commands: below.map(one => ({ name: one.name(), help: one.description() })),
    flags: help.visibleOptions(command).map(flagOf),
    argument:
      command.name() === 'help'
        ? { kind: 'words', words: alternatives }
        : argumentOf(command.registeredArguments[0]),
  }
  return [branch, ...below.flatMap(one => branches(one, `${path} `, names))]
}

/** Returns the path of every subcommand, quoted for a shell: `'ev jobs'`, `'ev jobs show'`. */
export const steps = (all: readonly Branch[]): string[] =>
  all.flatMap(({ path, commands }) => commands.map(({ name }) => `'${path} ${name}'`))

/** Returns the options that take a value, such as `'ev bulk --output'`, by their completion. */
export function valuePatterns(
  all: readonly Branch[],
  offer: (takes: Takes) => string,
): Map<string, string[]> {
  const patterns = new Map<string, string[]>()
  for (const { path, flags } of all) {
    for (const { names, takes } of flags.filter(flag => flag.takes.kind !== 'nothing')) {
      const known = patterns.get(offer(takes)) ?? []
      patterns.set(offer(takes), [...known, ...names.map(name => `'${path} ${name}'`)])
    }
  }
  return patterns
}

function flagOf(option: Option): Flag {
  const names = [option.short, option.long].filter(name => name !== undefined)
  return { names, help: option.description, takes: valueTaken(option) }
}

function valueTaken({ flags, argChoices, required, optional }: Option): Takes {
  if (!required && !optional) return { kind: 'nothing' }
  if (argChoices !== undefined) return { kind: 'words', words: argChoices }
  if (flags.endsWith('<on|off>')) return { kind: 'words', words: ['on', 'off'] }
  return placeholderKind(/[<[]([^<[]+)[>\]]$/.exec(flags)?.[1] ?? '')
}

function argumentOf(argument: Argument | undefined): Takes {
  if (argument === undefined) return { kind: 'nothing' }
  if (argument.argChoices !== undefined) return { kind: 'words', words: argument.argChoices }
  if (argument.name() === 'on|off') return { kind: 'words', words: ['on', 'off'] }
  return placeholderKind(argument.name())
}

/** Derives the kind of value from its placeholder. */
function placeholderKind(placeholder: string): Takes {
  if (/^(file|path|scenario)$/.test(placeholder)) return { kind: 'file' }
  if (placeholder === 'dir') return { kind: 'folder' }
  if (placeholder === 'id') return { kind: 'job' }
  return { kind: placeholder === 'webhook' ? 'webhook' : 'text' }
}

/** Shell commands that print all IDs of a kind, for completion. */
export const IDS = {
  job: `ev jobs list --json 2>/dev/null | sed -n 's/^ *"job_id": "\\(job_[a-z0-9_]*\\)",*$/\\1/p'`,
  webhook: `ev webhooks list --json 2>/dev/null | sed -n 's/^ *"id": "\\(wh_[a-z0-9]*\\)",*$/\\1/p'`,
} as const
