import { existsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { extname } from 'node:path'
import type { Class } from '../../engine/verdict/verdict.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { cannotWrite, canonicalPath, partialPath, resolveOutput } from './output-sink.ts'
import type { Format } from './row-text.ts'

/** One file of an output and the classes of the rows written to it; `-` is stdout. */
export type OutputFile = { readonly path: string; readonly classes: readonly Class[] }

export type OutputFlags = {
  readonly output: string
  readonly only?: string
  readonly split?: boolean
}

/** Returns the output if none is named: `list.verified.csv` beside `list.csv`; stdout for stdin. */
export function defaultOutput(list: string, format: Format = 'csv'): string {
  // A pipe, such as /dev/stdin or that of <(zcat list.gz), has no folder to write to.
  if (list === '-' || list.startsWith('/dev/')) return '-'
  const extension = extname(list)
  const isTable = ['.csv', '.tsv'].includes(extension.toLowerCase())
  const ending = format === 'csv' ? (isTable ? extension : '.csv') : `.${format}`
  return `${list.slice(0, list.length - extension.length)}.verified${ending}`
}

/** Returns the files to write. Each class goes to one file at most. */
export function planOutput({ output, only, split = false }: OutputFlags): OutputFile[] {
  // A script may pass an unset variable, as in -o "$OUT".
  if (output === '') throw new EvError('usage', '-o is empty. Name a file, or - for stdout.')
  if (/\.(xlsx?|ods|numbers)$/i.test(output)) {
    throw new EvError(
      'usage',
      `ev does not write spreadsheets such as ${sanitizeText(output)}. Name a CSV file, such as out.csv: spreadsheet programs open it.`,
    )
  }
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

const CLASSES = ['deliverable', 'risky', 'undeliverable', 'unknown'] as const satisfies Class[]

function parseClasses(value: string): Class[] {
  const names = value.split(',').map(name => name.trim())
  const unknown = names.find(name => !CLASSES.some(klass => klass === name))
  if (unknown !== undefined) {
    throw new EvError(
      'usage',
      `--only has "${sanitizeText(unknown, 40)}"; it takes a comma-separated list of ${CLASSES.join(', ')}.`,
    )
  }
  return CLASSES.filter(klass => names.includes(klass))
}

/** Inserts the class before the extension: `out.csv` becomes `out.risky.csv`. */
function pathForClass(output: string, klass: Class): string {
  const extension = extname(output)
  return `${output.slice(0, output.length - extension.length)}.${klass}${extension}`
}

/** Throws EvError before processing starts if the output cannot be written; `list` may be `-`. */
export async function checkOutput(
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
  } catch (error) {
    throw cannotWrite(output, error)
  }
}
