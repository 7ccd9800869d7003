import { existsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { EvError } from '../../platform/error.ts'
import type { OutputFile, OutputFlags } from './output-plan.ts'
import { cannotWrite, partialOf, placeOf, truePath } from './output-sink.ts'

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
