import { Writable } from 'node:stream'
import type { Argument, Command, Option } from 'commander'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'

/** What the shell offers: files, folders, or words with their descriptions. */
type Offer = 'files' | 'folders' | readonly Candidate[]

type Candidate = { readonly word: string; readonly help?: string }

/** Runs a command line of `ev` in a context, as `run` does. */
export type RunEv = (argv: readonly string[], context: CliContext) => Promise<number>

type Input = {
  /** The word at the cursor behind an equals sign, then the words before it. */
  readonly words: readonly string[]
  readonly ev: Command
  readonly runEv: RunEv
}

/**
 * Runs `ev __complete`: prints `files`, `folders`, or `words` followed by the words, one per line
 * with its description behind a tab.
 */
export async function completeCommand(context: CliContext, input: Input): Promise<void> {
  const [marked = '', ...before] = input.words
  const current = marked.replace(/^=/, '')
  const offer = await findOffer(context, { ...input, words: before }, current)
  const lines =
    typeof offer === 'string'
      ? [offer]
      : ['words', ...offer.filter(({ word }) => word.startsWith(current)).map(lineOf)]
  context.stdout.write(lines.map(line => `${line}\n`).join(''))
}

const lineOf = ({ word, help }: Candidate) =>
  help === undefined || help === '' ? word : `${word}\t${help.replaceAll(/\s+/g, ' ')}`

async function findOffer(context: CliContext, input: Input, current: string): Promise<Offer> {
  const { command, option, operands, global } = readWords(input.ev, input.words)
  const list = (kind: keyof typeof LISTS) => listIds(context, input.runEv, global, kind)
  if (option !== null) return offerValue(option, list)
  if (current.startsWith('-')) return optionsOf(command)
  const [first] = operands
  if (command.name() === 'help') return subcommandsOf(command.parent ?? command, operands)
  if (first === undefined && command.commands.length > 0) return subcommandsOf(command, [])
  const all = command.registeredArguments
  const argument = all[operands.length] ?? (all.at(-1)?.variadic ? all.at(-1) : undefined)
  return argument === undefined ? [] : offerArgument(argument, list)
}

/** The words before the cursor: the command, its operands, and an option without its value. */
type ReadWords = {
  readonly command: Command
  readonly operands: readonly string[]
  readonly option: Option | null
  /** The options before the command, with their values. */
  readonly global: readonly string[]
}

function readWords(ev: Command, words: readonly string[]): ReadWords {
  let command = ev
  let option: Option | null = null
  const operands: string[] = []
  const global: string[] = []
  for (const word of words) {
    if (command === ev && (option !== null || word.startsWith('-'))) global.push(word)
    if (option !== null) option = null
    else if (word.startsWith('-')) option = findOption(command, word)
    else {
      const next = operands.length === 0 ? findCommand(command, word) : undefined
      if (next === undefined) operands.push(word)
      else command = next
    }
  }
  return { command, operands, option, global }
}

const findCommand = ({ commands }: Command, name: string) =>
  commands.find(command => command.name() === name)

/** Returns the option of this name if its value is the next word. */
function findOption({ options }: Command, word: string): Option | null {
  const option = options.find(({ short, long }) => word === short || word === long)
  return option !== undefined && takesValue(option) ? option : null
}

const takesValue = ({ required, optional }: Option) => required || optional

function optionsOf(command: Command): Candidate[] {
  const help = command.createHelp()
  return help
    .visibleOptions(command)
    .flatMap(({ short, long, description }) =>
      [short, long].filter(name => name !== undefined).map(word => ({ word, help: description })),
    )
}

/** Returns the subcommands at the end of a path of names. */
function subcommandsOf(command: Command, path: readonly string[]): Candidate[] {
  const end = path.reduce<Command | undefined>(
    (parent, name) => parent && findCommand(parent, name),
    command,
  )
  if (end === undefined) return []
  return end
    .createHelp()
    .visibleCommands(end)
    .map(one => ({ word: one.name(), help: one.description() }))
}

type ListIds = (kind: keyof typeof LISTS) => Promise<Candidate[]>

function offerValue({ flags, argChoices }: Option, list: ListIds): Offer | Promise<Offer> {
  const [, placeholder = ''] = /[<[]([^<[]+)[>\]]$/.exec(flags) ?? []
  if (argChoices !== undefined) return toCandidates(argChoices)
  return placeholder === 'account' ? list('account') : offerFor(placeholder)
}

function offerArgument(argument: Argument, list: ListIds): Offer | Promise<Offer> {
  const name = argument.name()
  if (argument.argChoices !== undefined) return toCandidates(argument.argChoices)
  return Object.hasOwn(LISTS, name) ? list(name as keyof typeof LISTS) : offerFor(name)
}

/** Derives from its placeholder what a value is. */
function offerFor(placeholder: string): Offer {
  if (placeholder === 'on|off') return toCandidates(['on', 'off'])
  if (/^(file|path|scenario)$/.test(placeholder)) return 'files'
  return placeholder === 'dir' ? 'folders' : []
}

const toCandidates = (words: readonly string[]): Candidate[] => words.map(word => ({ word }))

/** The commands that list what an argument names, and the fields of its ID and its description. */
const LISTS = {
  id: { words: ['jobs', 'list'], id: 'job_id', help: 'list' },
  job: { words: ['jobs', 'list'], id: 'job_id', help: 'list' },
  webhook: { words: ['webhooks', 'list'], id: 'id', help: 'url' },
  key: { words: ['keys', 'list'], id: 'id', help: 'name' },
  schedule: { words: ['schedules', 'list'], id: 'id', help: 'job_id' },
  source: { words: ['feedback', 'sources', 'list'], id: 'id', help: 'provider' },
  account: { words: ['accounts', 'list'], id: 'id', help: 'name' },
} as const

/** Lists IDs as the command of their kind does; none if it fails. */
async function listIds(
  context: CliContext,
  runEv: RunEv,
  global: readonly string[],
  kind: keyof typeof LISTS,
): Promise<Candidate[]> {
  const { words, id, help } = LISTS[kind]
  const output = new TextOutput()
  const silent: CliContext = Object.create(context, {
    stdout: { value: output },
    stderr: { value: new TextOutput() },
  })
  const code = await runEv([...global, ...words, '--json'], silent)
  if (code !== 0) return []
  const rows = JSON.parse(output.text) as readonly Readonly<Record<string, unknown>>[]
  return rows.map(row => ({ word: String(row[id]), help: sanitizeText(String(row[help] ?? '')) }))
}

/** An output whose text is kept. */
class TextOutput extends Writable {
  text = ''

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString('utf8')
    done()
  }
}
