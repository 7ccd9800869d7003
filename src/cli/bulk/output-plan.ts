import { existsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { dirname, extname } from 'node:path'
import { CLASSES, type Class } from '../../engine/verdict/verdict.ts'
import { SHEET_ROWS_MAX } from '../../formats/sheet-limits.ts'
import type { Vocabulary } from '../../formats/vocabulary/names.ts'
import { canonicalPath } from '../../platform/directory.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { formatNumber, joinWords } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type CliContext, inCwd } from '../context.ts'
import { checkVocabulary, parseActions, parseClasses } from '../flag-values.ts'
import { isUrl, nameOfUrl } from './list-url.ts'
import { partialPath, resolveOutput } from './output-sink.ts'
import type { Format } from './row-text.ts'

/** One file of an output and the classes of the rows written to it; `-` is stdout. */
export type OutputFile = { readonly path: string; readonly classes: readonly Class[] }

type OutputFlags = {
  readonly output: string
  readonly only?: string
  readonly split?: boolean
}

/**
 * Returns the output if none is named: `list.verified.csv` beside `list.csv`, in the format and
 * compression of the list if its name tells them; stdout for stdin.
 */
export function defaultOutput(list: string, format?: Format): string {
  // A pipe, such as /dev/stdin or that of <(zcat list.gz), has no folder to write to.
  if (list === '-' || list.startsWith('/dev/')) return '-'
  const plain = list.replace(/\.(gz|zip)$/i, '')
  const compression = format !== 'xlsx' && isGzip(list) ? list.slice(plain.length) : ''
  const extension = extname(plain)
  const isKept = ['.csv', '.tsv', '.xlsx'].includes(extension.toLowerCase())
  const table = isKept && (format ?? formatFor(plain)) === formatFor(plain) ? extension : '.csv'
  const ending = format === undefined || format === 'csv' ? table : `.${format}`
  return `${plain.slice(0, plain.length - extension.length)}.verified${ending}${compression}`
}

/** The format of an output by the extension of its name, before `.gz`. */
const FORMATS: Readonly<Record<string, Format>> = {
  '.csv': 'csv',
  '.tsv': 'csv',
  '.txt': 'csv',
  '.json': 'json',
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
  '.xlsx': 'xlsx',
}

const extensionOf = (output: string) => extname(output.replace(/\.gz$/i, '')).toLowerCase()

/** Returns the format of an output by its name; CSV if its name does not tell. */
const formatFor = (output: string): Format => FORMATS[extensionOf(output)] ?? 'csv'

/** Returns true if the name of a file says that it is compressed with gzip. */
export const isGzip = (path: string) => /\.gz$/i.test(path)

/** The list and the output of a command line, with absolute or working paths; `-` for streams. */
type NamedFiles = {
  readonly list: string
  readonly output: string
  readonly format: Format
}

/** Returns the list and the output that a command line names, and the format of the output. */
export function nameFiles(
  context: CliContext,
  file: string,
  flags: { readonly output?: string; readonly format?: Format; readonly vocabulary?: Vocabulary },
): NamedFiles {
  // `-` is stdin or stdout; an empty name is reported later.
  const toPath = (name: string) => (name === '-' || name === '' ? name : inCwd(context, name))
  const given = flags.output ?? defaultOutput(isUrl(file) ? nameOfUrl(file) : file, flags.format)
  const format = chooseFormat(given, flags.format)
  checkVocabulary(flags.vocabulary, format)
  return { list: isUrl(file) ? file : toPath(file), output: toPath(given), format }
}

/** Returns the files to write. Throws EvError before any work if they cannot be written. */
export async function prepareOutput(
  { stdout }: Pick<CliContext, 'stdout'>,
  list: string,
  flags: OutputFlags & { readonly action?: string; readonly format?: Format },
): Promise<OutputFile[]> {
  const files = planOutput(flags)
  if (flags.action !== undefined) parseActions(flags.action)
  if (flags.format === 'xlsx' && flags.output === '-' && stdout.isTTY === true) throw binary()
  await checkOutput(isUrl(list) ? '-' : list, files, flags)
  return files
}

const binary = () =>
  new EvError(
    'usage',
    'A workbook cannot be shown on a terminal. Name a file with -o, such as out.xlsx.',
  )

/** Returns the files to write. Each class goes to one file at most. */
export function planOutput({ output, only, split = false }: OutputFlags): OutputFile[] {
  // A script may pass an unset variable, as in -o "$OUT".
  if (output === '') throw new EvError('usage', '-o is empty. Name a file, or - for stdout.')
  const classes = only === undefined ? CLASSES : parseClasses(only)
  if (!split) return [{ path: output, classes }]
  if (output === '-') {
    throw new EvError(
      'usage',
      '--split writes one file per class and cannot write to stdout. Name a file with -o.',
    )
  }
  return classes.map(klass => ({ path: pathForClass(output, klass), classes: [klass] }))
}

/**
 * Returns the format of an output: `set`, the value of `--format`, or that of its name. Throws
 * EvError('usage') if the name is that of a file in another format.
 */
export function chooseFormat(output: string, set?: Format): Format {
  const name = sanitizeText(output)
  const extension = extensionOf(output)
  const named = FORMATS[extension]
  if (extension !== '' && named === undefined && (set === undefined || set === 'xlsx')) {
    throw new EvError(
      'usage',
      `${name} does not tell the format: ${sanitizeText(extension)} is not known. With -o, name a file that ends in ${joinWords(Object.keys(FORMATS), 'or')}, or in one of them and .gz, or set a text format with --format.`,
    )
  }
  if (isGzip(output) && named === 'xlsx') {
    throw new EvError('usage', `${name} ends in .gz, but a workbook is compressed. Omit .gz.`)
  }
  if (set === undefined) return named ?? 'csv'
  // The name of a text file is used for every text format.
  const isFitting = named === undefined || named === set || (extension === '.txt' && set !== 'xlsx')
  if (isFitting) return set
  throw new EvError(
    'usage',
    `${name} is the name of a file in the format ${named}, but --format is ${set}. Name another file with -o, or omit --format.`,
  )
}

/** Throws EvError before processing starts if the rows do not fit the format. */
export function checkRowCount(rows: number, format: Format = 'csv'): void {
  if (format !== 'xlsx' || rows <= SHEET_ROWS_MAX) return
  throw new EvError(
    'usage',
    `The list has ${formatNumber(rows)} rows, but a worksheet has at most ${formatNumber(SHEET_ROWS_MAX)}. Name a CSV file with -o, such as out.csv.`,
  )
}

/** Inserts the class before the extension: `out.csv` becomes `out.risky.csv`. */
function pathForClass(output: string, klass: Class): string {
  const plain = output.replace(/\.gz$/i, '')
  const stem = plain.slice(0, plain.length - extname(plain).length)
  return `${stem}.${klass}${output.slice(stem.length)}`
}

/** Throws EvError before processing starts if the output cannot be written; `list` may be `-`. */
async function checkOutput(
  list: string,
  files: readonly OutputFile[],
  { output, split = false }: OutputFlags,
): Promise<void> {
  if (split) checkBase(output)
  const nameByPath = new Map<string, string>()
  for (const { path: name } of files.filter(file => file.path !== '-')) {
    const { path, isFile } = resolveOutput(name)
    const other = nameByPath.get(path)
    if (other !== undefined) {
      throw new EvError(
        'usage',
        `${other} and ${name} are the same file. Name another file with -o.`,
      )
    }
    nameByPath.set(path, name)
    if (list !== '-') checkNotList(list, name, path)
    if (isFile) await checkWritable(name, partialPath(path))
  }
}

/** Throws if the base name of `--split` is a device or a pipe. */
function checkBase(output: string): void {
  if (resolveOutput(output).isFile) return
  throw new EvError(
    'usage',
    `--split derives file names from ${output}, which is not a regular file. Name a file with -o.`,
  )
}

function checkNotList(list: string, output: string, path: string): void {
  const clash = [path, partialPath(path)].includes(canonicalPath(list))
  if (!clash) return
  const what =
    canonicalPath(list) === path
      ? `The output ${output} is the list itself.`
      : `The list ${list} has the name of the temporary file of the output.`
  throw new EvError('usage', `${what} Name another file with -o.`)
}

async function checkWritable(output: string, partial: string): Promise<void> {
  // An existing file may belong to a run that is writing now, so it is not truncated or removed.
  const isThere = existsSync(partial)
  try {
    await (await open(partial, 'a')).close()
    if (!isThere) await rm(partial, { force: true })
  } catch (cause) {
    const folder = dirname(output)
    const message = existsSync(dirname(partial))
      ? `${output} cannot be written: ${errorMessage(cause)}. Name another file with -o.`
      : `The folder ${folder} does not exist. Create it, or name another file with -o.`
    throw new EvError('cannot_write', message, { cause })
  }
}
