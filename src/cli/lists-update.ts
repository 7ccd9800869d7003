import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { composeResolver } from '../compose/engine.ts'
import type { Config } from '../config/settings.ts'
import {
  type CustomListName,
  ENTRY_FORMAT_HINT,
  readEntry,
} from '../engine/address/custom-list-entry.ts'
import { ENTRIES_MAX, entriesIn, keysInFile, SIZE_MAX } from '../engine/address/custom-list-file.ts'
import { createIpPolicy } from '../engine/smtp/dial-policy.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { formatMebibytes, formatNumber } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import { type CliContext, inCwd } from './context.ts'
import { type DownloadDeps, download, shown } from './lists-download.ts'

export type UpdateFlags = {
  readonly dryRun?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

type UpdateInput = {
  readonly list: CustomListName
  /** The file to write. */
  readonly file: string
  /** Files and URLs to read. */
  readonly sources: readonly string[]
  /** Whether nothing is written. */
  readonly isDryRun: boolean
}

/** What an update has changed, or would change in a dry run. */
export type ListUpdate = {
  readonly file: string
  readonly written: boolean
  readonly entries: number
  readonly added: number
  readonly removed: number
  readonly sources: readonly {
    readonly source: string
    readonly entries: number
    readonly left_out: number
    readonly first_left_out: string | null
  }[]
}

/**
 * Replaces the file of a list by the entries of all sources. Throws EvError, and changes nothing, if
 * ev did not write the file, if a source cannot be read, or if there are too many entries.
 */
export async function updateList(
  context: CliContext,
  config: Config,
  { list, file, sources, isDryRun }: UpdateInput,
): Promise<ListUpdate> {
  // Refuse a file of the user's own before fetching anything.
  const before = readWritten(list, file)
  const read = await readAll(context, config, list, sources)
  const keys = new Set(read.flatMap(({ keys }) => [...keys]))
  if (keys.size > ENTRIES_MAX) {
    const sentence = `The sources have ${formatNumber(keys.size)} entries in total; a list takes up to ${formatNumber(ENTRIES_MAX)}.`
    throw new EvError('bad_input', sentence)
  }
  if (!isDryRun) writeList(file, [...keys].toSorted(), read, new Date(context.clock.now()))
  return {
    file,
    written: !isDryRun,
    entries: keys.size,
    added: [...keys].filter(key => !before.has(key)).length,
    removed: [...before].filter(key => !keys.has(key)).length,
    sources: read.map(({ source, keys, bad, firstBad }) => ({
      source,
      entries: keys.size,
      left_out: bad,
      first_left_out: firstBad,
    })),
  }
}

async function readAll(
  context: CliContext,
  config: Config,
  list: CustomListName,
  sources: readonly string[],
): Promise<SourceEntries[]> {
  const { clock } = context
  const { resolver, close } = composeResolver(config, context.externalDeps?.resolver, clock)
  try {
    const deps = { clock, resolver, mayDial: createIpPolicy(config.allowRanges) }
    const read: SourceEntries[] = []
    // In sequence: each source may take 32 MB of memory.
    for (const source of sources) read.push(await readSource(context, list, source, deps))
    return read
  } catch (cause) {
    if (!(cause instanceof EvError)) throw cause
    const hints = [
      cause.code === 'bad_input' ? ` A line takes ${ENTRY_FORMAT_HINT[list]}.` : '',
      /not public/.test(cause.message) ? ' If you trust it, allow it with --allow-ranges.' : '',
    ]
    const sentence = `${cause.message}${hints.join('')} Nothing was changed.`
    throw new EvError(cause.code, sentence, { cause })
  } finally {
    close()
  }
}

/** The first line of a file that ev wrote, and may replace. */
const MARK = '# Written by ev lists update. Changes are lost with the next update.'

/** Returns the entries of the existing list. Throws EvError if ev did not write the file. */
function readWritten(list: CustomListName, file: string): ReadonlySet<string> {
  if (!existsSync(file)) return new Set()
  if (statSync(file).isFile() && readFileSync(file, 'utf8').startsWith(MARK)) {
    return new Set(keysInFile(list, file))
  }
  throw new EvError(
    'cannot_write',
    `${file} was not written by "ev lists update" and is not overwritten. Rename it and add it as a source.`,
  )
}

/** Replaces the file atomically: a reader sees the old list or the new one, even after a crash. */
function writeList(
  named: string,
  keys: readonly string[],
  sources: readonly Pick<SourceEntries, 'source'>[],
  now: Date,
): void {
  // Replace the target of a symbolic link, not the link.
  const file = existsSync(named) ? realpathSync(named) : named
  const partial = `${file}.${process.pid}.partial`
  const comments = [MARK, `# ${now.toISOString()}`, ...sources.map(({ source }) => `# ${source}`)]
  try {
    const descriptor = openSync(partial, 'w')
    try {
      writeFileSync(descriptor, `${[...comments, ...keys].join('\n')}\n`)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(partial, file)
  } catch (cause) {
    rmSync(partial, { force: true })
    const why = errorMessage(cause)
    throw new EvError('cannot_write', `${named} cannot be written: ${why}.`, { cause })
  }
}

type SourceEntries = {
  /** Name of the source in messages, without a password. */
  readonly source: string
  readonly keys: ReadonlySet<string>
  /** Number of invalid lines. */
  readonly bad: number
  /** The first of them, with the reason. */
  readonly firstBad: string | null
}

/** Public lists have a few invalid lines. In HTML or a list of another kind, most are invalid. */
const BAD_SHARE_MAX = 0.05
/** Enough of an invalid line to find it. */
const SHOWN_MAX = 80

/** Reads a file or URL. Throws EvError if it cannot be read or is not a list of this kind. */
async function readSource(
  context: CliContext,
  list: CustomListName,
  source: string,
  deps: DownloadDeps,
): Promise<SourceEntries> {
  const bytes = isUrl(source) ? await download(source, SIZE_MAX, deps) : readBytes(context, source)
  const keys = new Set<string>()
  let [lines, bad] = [0, 0]
  let firstBad: string | null = null
  for (const { number, text } of linesOf(new TextDecoder('utf-8').decode(bytes))) {
    lines++
    const entry = readEntry(list, text)
    if ('key' in entry) keys.add(entry.key)
    else if (bad++ === 0) {
      firstBad = `"${sanitizeText(text, SHOWN_MAX)}" on line ${number}. ${entry.why}`
    }
  }
  const name = shown(source)
  if (bad > lines * BAD_SHARE_MAX) {
    throw new EvError('bad_input', `${name} is not a list of this kind: it has ${firstBad}`)
  }
  if (keys.size === 0) throw new EvError('bad_input', `${name} is empty.`)
  return { source: name, keys, bad, firstBad }
}

const isUrl = (source: string) => /^https?:\/\//i.test(source)

type Line = { readonly number: number; readonly text: string }

/** The entries of a text file, or of a JSON array of strings. */
function linesOf(text: string): Iterable<Line> {
  if (!text.trimStart().startsWith('[')) return entriesIn(text)
  try {
    const values: unknown = JSON.parse(text)
    if (Array.isArray(values)) {
      return values.map((value, index) => ({ number: index + 1, text: String(value).trim() }))
    }
  } catch {
    // Not JSON: read it as text.
  }
  return entriesIn(text)
}

function readBytes(context: CliContext, source: string): Buffer {
  const path = inCwd(context, source)
  try {
    if (statSync(path).size > SIZE_MAX) {
      throw new Error(`it is larger than ${formatMebibytes(SIZE_MAX)}`)
    }
    return readFileSync(path)
  } catch (cause) {
    const why = errorMessage(cause)
    throw new EvError('no_input', `The source ${source} cannot be read: ${why}.`, { cause })
  }
}
