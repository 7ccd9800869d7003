import type { Argument, Command, Option } from 'commander'

/** What can stand after a command or an option. */
export type Takes =
  | { readonly kind: 'nothing' | 'text' | 'file' | 'folder' | 'job' | 'webhook' }
  | { readonly kind: 'words'; readonly words: readonly string[] }

export type Flag = {
  /** `-o`, `--output`. */
  readonly names: readonly string[]
  readonly help: string
  readonly takes: Takes
}

/** One command: what may follow it. */
export type Branch = {
  /** As it is typed: `ev jobs show`. */
  readonly path: string
  readonly commands: readonly { readonly name: string; readonly help: string }[]
  readonly flags: readonly Flag[]
  readonly argument: Takes
}

/** A command and all below it, as commander knows them. */
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

/** Every way from a command to one below it, quoted for a shell: `'ev jobs'`, `'ev jobs show'`. */
export const steps = (all: readonly Branch[]): string[] =>
  all.flatMap(({ path, commands }) => commands.map(({ name }) => `'${path} ${name}'`))

/** Where a value stands, as `'ev bulk --output'`, by what a shell offers there. */
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

function valueTaken({ long = '', flags, argChoices, required, optional }: Option): Takes {
  if (!required && !optional) return { kind: 'nothing' }
  if (argChoices !== undefined) return { kind: 'words', words: argChoices }
  if (flags.endsWith('<on|off>')) return { kind: 'words', words: ['on', 'off'] }
  if (long.endsWith('-file')) return { kind: 'file' }
  return placeTaken(/[<[](.+)[>\]]$/.exec(flags)?.[1] ?? '')
}

function argumentOf(argument: Argument | undefined): Takes {
  if (argument === undefined) return { kind: 'nothing' }
  if (argument.argChoices !== undefined) return { kind: 'words', words: argument.argChoices }
  return placeTaken(argument.name())
}

/** The placeholder tells. */
function placeTaken(placeholder: string): Takes {
  if (/^file$/i.test(placeholder)) return { kind: 'file' }
  if (/^(dir|folder)$/i.test(placeholder)) return { kind: 'folder' }
  if (placeholder === 'id') return { kind: 'job' }
  return { kind: placeholder === 'webhook' ? 'webhook' : 'text' }
}
