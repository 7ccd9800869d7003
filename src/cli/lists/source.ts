import { readFileSync, statSync } from 'node:fs'
import {
  type CustomListName,
  entriesIn,
  readEntry,
  SIZE_MAX,
} from '../../engine/address/custom-list-file.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { formatMebibytes } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type CliContext, inCwd } from '../context.ts'
import { type DownloadDeps, download, isHttp, shown } from './download.ts'

/** The entries of one source. */
export type SourceEntries = {
  /** The source as it is shown to people. */
  readonly source: string
  readonly keys: ReadonlySet<string>
  /** Lines that the list cannot take. */
  readonly bad: number
  /** The first of them, with the reason. */
  readonly firstBad: string | null
}

/** Public lists hold a few slips. A page of HTML, or a list of another kind, is mostly bad lines. */
const BAD_SHARE_MAX = 0.05
/** Of a line that is wrong, enough to find it by. */
const SHOWN_MAX = 80

/** Reads a file or URL. Throws EvError where it cannot be read, or holds no list of this kind. */
export async function readSource(
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
      firstBad = `"${sanitizeText(text, SHOWN_MAX)}" in line ${number}. ${entry.why}`
    }
  }
  const name = shown(source)
  if (bad > lines * BAD_SHARE_MAX) {
    throw new EvError('bad_input', `${name} is not such a list: it has ${firstBad}`)
  }
  if (keys.size === 0) throw new EvError('bad_input', `${name} is empty.`)
  return { source: name, keys, bad, firstBad }
}

const isUrl = (source: string) => /^https?:\/\//i.test(source) && isHttp(new URL(source))

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
      throw new Error(`it is longer than ${formatMebibytes(SIZE_MAX)}`)
    }
    return readFileSync(path)
  } catch (cause) {
    const why = errorMessage(cause)
    throw new EvError('no_input', `The source ${source} cannot be read: ${why}.`, { cause })
  }
}
