import { existsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { extname } from 'node:path'
import type { Class } from '../../engine/verdict/verdict.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { cannotWrite, partialOf, placeOf, truePath } from './output-sink.ts'

/** One file of an output, and the classes of the rows that go there; `-` is stdout. */
export type OutputFile = { readonly path: string; readonly classes: readonly Class[] }

export type OutputFlags = {
  readonly output: string
  readonly only?: string
  readonly split?: boolean
}

/** Says which rows go where: a class goes to one file at most. */
export function planOutput({ output, only, split = false }: OutputFlags): OutputFile[] {
  // Such as "$OUT" in a script that never set it.
  if (output === '') throw new EvError('usage', 'The output has no name. Name a file with -o.')
  const classes = only === undefined ? CLASSES : readClasses(only)
  if (!split) return [{ path: output, classes }]
  if (output === '-') {
    throw new EvError(
      'usage',
      '--split writes a file for each class, which stdout cannot hold. Name a file with -o.',
    )
  }
  return classes.map(klass => ({ path: besides(output, klass), classes: [klass] }))
}

const CLASSES = ['deliverable', 'risky', 'undeliverable', 'unknown'] as const satisfies Class[]

function readClasses(given: string): Class[] {
  const names = given.split(',').map(name => name.trim())
  const stranger = names.find(name => !CLASSES.some(klass => klass === name))
  if (stranger !== undefined) {
    throw new EvError(
      'usage',
      `--only takes ${CLASSES.join(', ')}, or several of them with commas between; “${sanitizeText(stranger, 40)}” is none of these.`,
    )
  }
  return CLASSES.filter(klass => names.includes(klass))
}

/** `out.csv` becomes `out.risky.csv`. */
function besides(output: string, klass: Class): string {
  const extension = extname(output)
  return `${output.slice(0, output.length - extension.length)}.${klass}${extension}`
}

/** Tells before the work begins when its output could not be written after it; `list` may be `-`. */
export async function checkOutput(
  list: string,
  files: readonly OutputFile[],
  { output, split = false }: OutputFlags,
): Promise<void> {
  if (split) checkBase(output)
  const places = new Map<string, string>()
  for (const { path: given } of files.filter(file => file.path !== '-')) {
    const { path, isFile } = placeOf(given)
    const other = places.get(path)
    if (other !== undefined) {
      throw new EvError('usage', `${other} and ${given} are one file. Name another with -o.`)
    }
    places.set(path, given)
    if (list !== '-') refuseList(list, given, path)
    if (isFile) await tryWriting(given, partialOf(path))
  }
}

/** A folder or a device is hardly meant to be the beginning of four names. */
function checkBase(output: string): void {
  if (placeOf(output).isFile) return
  throw new EvError(
    'usage',
    `--split writes files beside ${output}, which is no file itself. Name a file with -o.`,
  )
}

function refuseList(list: string, output: string, path: string): void {
  const clash = [path, partialOf(path)].includes(truePath(list))
  if (!clash) return
  const what =
    truePath(list) === path
      ? `The output ${output} is the list itself.`
      : `The list ${list} has the name that the output has until it is whole.`
  throw new EvError('usage', `${what} Name another file with -o.`)
}

async function tryWriting(output: string, partial: string): Promise<void> {
  // What is there may be that of a run that writes just now: it is neither shortened nor removed.
  const isThere = existsSync(partial)
  try {
    await (await open(partial, 'a')).close()
    if (!isThere) await rm(partial, { force: true })
  } catch (error) {
    throw cannotWrite(output, error)
  }
}
