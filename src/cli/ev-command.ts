import { type Argument, Command, CommanderError, type ErrorOptions, Help, Option } from 'commander'
import { EvError } from '../platform/error.ts'
import { joinWords } from '../platform/format.ts'
import { sanitizeText, toSentence } from '../platform/text.ts'
import { wrapHelp } from './width.ts'

/** An option of a setting. Help shows one that is not common only with `--help-all`. */
export class SettingOption extends Option {
  readonly isCommon: boolean

  constructor(flags: string, description: string, isCommon: boolean) {
    super(flags, description)
    this.isCommon = isCommon
  }
}

/** An option that only works on this machine, in a command that also works on a service. */
export class MachineOption extends Option {}

/** Width of help in characters if the output has none: the default of commander. */
const WIDTH = 80

/** A command whose help fits the width of the output, and whose errors are EvErrors. */
export class EvCommand extends Command {
  /** Whether help shows all settings. */
  showsAll = false
  /**
   * Where the command works. `service`: on this machine, or on a service with --url. `machine`: on
   * the data of this machine only. `process`: on neither, so EV_URL does not concern it.
   */
  runsOn: 'service' | 'machine' | 'process' = 'machine'
  /** The lines below "Examples:" in help. */
  readonly #examples: string[] = []

  override createCommand(name?: string): Command {
    return new EvCommand(name)
  }

  override createHelp(): Help {
    return Object.assign(new EvHelp(), this.configureHelp())
  }

  /**
   * Adds `--help-all`, which shows the settings that `--help` leaves out. If there are none, it is
   * accepted, but help does not list it.
   */
  addHelpAll({ isListed }: { readonly isListed: boolean }): void {
    const option = new Option('--help-all', 'show help with all settings').helpGroup('Options:')
    this.addOption(option.hideHelp(!isListed))
    this.on('option:help-all', () => {
      this.showsAll = true
      this.help()
    })
  }

  /** Accepts options of `ev` behind the command too. Help does not list them. */
  addInheritedOptions(version: string): void {
    this.addOption(new Option('-V, --version').hideHelp())
    this.on('option:version', () => {
      this.configureOutput().writeOut?.(`${version}\n`)
      throw new CommanderError(0, 'commander.version', version)
    })
    const hasOption = this.options.some(({ long }) => long === '--help-all')
    // The option of a command with subcommands would take precedence over theirs.
    if (this.commands.length === 0 && !hasOption) this.addHelpAll({ isListed: false })
  }

  override addHelpText(
    position: Parameters<Command['addHelpText']>[0],
    text: Parameters<Command['addHelpText']>[1] | string,
  ): this {
    if (typeof text !== 'string') return super.addHelpText(position, text)
    this.#examples.push(
      ...(/^Examples:\n((?: {2}.*\n?)+)/m.exec(text)?.[1]?.trimEnd().split('\n') ?? []),
    )
    return super.addHelpText(position, ({ error }) => {
      const { getOutHelpWidth, getErrHelpWidth } = this.configureOutput()
      return wrapHelp(text, (error ? getErrHelpWidth?.() : getOutHelpWidth?.()) ?? WIDTH)
    })
  }

  /** Called by commander for each error in the usage of this command. */
  override error(message: string, options?: ErrorOptions): never {
    throw new EvError('usage', this.#sentence(message, options?.code))
  }

  #sentence(message: string, code: string | undefined): string {
    const [what = '', suggestion = ''] = message.replace(/^error: /, '').split('\n')
    if (code === 'commander.unknownOption') {
      const flag = /'(.+)'/.exec(what)?.[1] ?? ''
      const meant = isServiceOption(flag, this)
        ? ` Give it before the command: ev ${flag} … ${pathOf(this).slice('ev '.length)}.`
        : suggestionText(suggestOption(flag, this, suggestion))
      return `Unknown option "${sanitizeText(flag)}".${meant} ${this.#remedy()}`
    }
    if (code === 'commander.unknownCommand') {
      const name = /'(.+)'/.exec(what)?.[1] ?? ''
      const meant = name.includes('@')
        ? ` To verify an address, run "ev verify ${sanitizeText(name)}".`
        : suggestion.replace(/^\((.+)\)$/, ' $1')
      return `Unknown command "${pathOf(this)} ${sanitizeText(name)}".${meant} To list all commands, run "ev help".`
    }
    const sentence = sanitizeText(plain(what), 500)
    return MISSING.has(code ?? '')
      ? `${sentence}\n\n${this.#shortHelp()}\n\n${this.#remedy()}`
      : `${sentence} ${this.#remedy()}`
  }

  /** Returns the usage and the first examples: a missing argument needs no list of options. */
  #shortHelp(): string {
    const width = this.configureOutput().getErrHelpWidth?.() ?? WIDTH
    const examples = wrapHelp(this.#examples.slice(0, EXAMPLES_SHOWN).join('\n'), width)
    return `Usage: ${this.createHelp().commandUsage(this)}\n\nExamples:\n${examples}`
  }

  #remedy(): string {
    const hasMore = this.options.some(({ long, hidden }) => long === '--help-all' && !hidden)
    return `To list all options, run "${pathOf(this)} ${hasMore ? '--help-all' : '--help'}".`
  }
}

const suggestionText = (like: string | null) => (like === null ? '' : ` Did you mean ${like}?`)

/** Whether a command that also works on a service has a flag behind it that belongs before it. */
function isServiceOption(flag: string, command: Command): boolean {
  if (!(command instanceof EvCommand) || command.runsOn !== 'service') return false
  return rootOf(command).options.some(({ long }) => long === flag)
}

const rootOf = (command: Command): Command =>
  command.parent === null ? command : rootOf(command.parent)

/** Marks a command that also works on a service, with --url. */
export function worksOnService(command: Command): void {
  if (command instanceof EvCommand) command.runsOn = 'service'
}

/** Marks a command that works on no stored data, so that EV_URL does not concern it. */
export function worksWithoutData(command: Command): void {
  if (command instanceof EvCommand) command.runsOn = 'process'
}

/** Returns a command as typed, such as `ev jobs show`. */
export const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`

/** The errors of commander that are answered with short help. */
const MISSING: ReadonlySet<string> = new Set([
  'commander.missingArgument',
  'commander.missingMandatoryOptionValue',
])
const EXAMPLES_SHOWN = 2

/** The error messages of commander, each with the sentence that replaces it. */
const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [/^option '(.+)' argument missing$/, 'Option "$1" needs a value.'],
  [/^required option '(.+)' not specified$/, 'Option "$1" is required.'],
  [/^missing required argument '(.+)'$/, 'Argument "$1" is missing.'],
  [
    /^option '(.+)' cannot be used with option '(.+)'$/,
    'Options "$1" and "$2" exclude each other.',
  ],
  [
    /^option '(.+)' argument '(.*)' is invalid\. Allowed choices are (.+)\.$/,
    'Option "$1" is "$2"; it takes one of $3.',
  ],
  [
    /^command-argument value '(.*)' is invalid for argument '(.+)'\. Allowed choices are (.+)\.$/,
    'Argument "$2" is "$1"; it takes one of $3.',
  ],
  [
    /^too many arguments.*Expected (\d+) arguments? but got (\d+): (.+)\.$/,
    'Too many arguments: $3. Expected: $1.',
  ],
]

function plain(message: string): string {
  for (const [form, sentence] of SENTENCES) {
    if (form.test(message)) return message.replace(form, sentence)
  }
  return toSentence(message)
}

/** Returns a command and all commands below it. */
export const commandTree = (command: Command): Command[] => [
  command,
  ...command.commands.flatMap(commandTree),
]

/** Inserts the choices before the default: `output format: text or csv (default: text)`. */
function withChoices({ description, argChoices }: Pick<Option, 'description' | 'argChoices'>) {
  if (argChoices === undefined) return description
  return description.replace(/(?: \(default: .*)?$/, `: ${joinWords(argChoices, 'or')}$&`)
}

/** Below this width a description goes below its term. */
const DESCRIPTION_MIN = 30

class EvHelp extends Help {
  override minWidthToWrap = 20

  override subcommandTerm(command: Command): string {
    return command.name()
  }

  override commandDescription(command: Command): string {
    return toSentence(command.description())
  }

  override optionDescription(option: Option): string {
    return withChoices(option)
  }

  override argumentDescription(argument: Argument): string {
    return withChoices(argument)
  }

  /** Completion and suggestions read `visibleOptions`, so hidden settings are left out only here. */
  override formatHelp(command: Command, helper: Help): string {
    const all = helper.visibleOptions.bind(helper)
    const showsAll = command instanceof EvCommand && command.showsAll
    const isShown = (option: Option) =>
      showsAll || !(option instanceof SettingOption) || option.isCommon
    helper.visibleOptions = one => all(one).filter(isShown)
    try {
      return super.formatHelp(command, helper)
    } finally {
      helper.visibleOptions = all
    }
  }

  override formatItem(term: string, termWidth: number, description: string, helper: Help): string {
    const width = helper.helpWidth ?? WIDTH
    if (description === '' || width - termWidth - 4 >= DESCRIPTION_MIN) {
      return super.formatItem(term, termWidth, description, helper)
    }
    const lines = helper.boxWrap(description, width - 8).split('\n')
    return [`  ${term}`, ...lines.map(line => `        ${line}`)].join('\n')
  }
}

/** Options by the names that other programs give them. The first one that a command has applies. */
const SAME_MEANING: Readonly<Record<string, readonly string[]>> = {
  '--bind': ['--listen', '--host'],
  '--cert': ['--tls-cert'],
  '--connections': ['--concurrency'],
  '--data': ['--data-dir'],
  '--db': ['--database'],
  '--dir': ['--data-dir'],
  '--ehlo': ['--helo'],
  '--filter': ['--only'],
  '--force': ['--yes', '--fresh'],
  '--from': ['--mail-from'],
  '--hostname': ['--host', '--helo'],
  '--key': ['--tls-key'],
  '--log-level': ['--log'],
  '--max': ['--limit', '--concurrency'],
  '--nameserver': ['--dns'],
  '--no-confirm': ['--yes'],
  '--offline': ['--no-smtp'],
  '--out': ['--output'],
  '--outfile': ['--output'],
  '--parallel': ['--concurrency'],
  '--port': ['--port', '--listen', '--smtp-port'],
  '--resolver': ['--dns'],
  '--sender': ['--mail-from'],
  '--silent': ['--quiet'],
  '--ssl': ['--tls-cert'],
  '--threads': ['--concurrency'],
  '--timeout': ['--deadline'],
  '--tls': ['--tls-cert'],
  '--url': ['--base-url', '--database'],
  '--workers': ['--concurrency'],
}

/**
 * Returns the options that an unknown flag probably means: by its meaning, else the similar ones in
 * the suggestion of commander, which also finds words that share only letters.
 */
function suggestOption(flag: string, command: Command, suggestion: string): string | null {
  const own = new Set(command.options.map(({ long }) => long))
  const byMeaning = SAME_MEANING[flag]?.find(name => own.has(name))
  if (byMeaning !== undefined) return byMeaning
  const similar = (suggestion.match(/--[a-z-]+/g) ?? []).filter(name => name[2] === flag[2])
  return similar.length === 0 ? null : similar.join(' or ')
}
