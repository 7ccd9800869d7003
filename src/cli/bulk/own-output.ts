import { existsSync, statSync } from 'node:fs'
import type { Database } from '../../db/database.ts'
import { openContent, readContentHead } from '../../formats/open-content.ts'
import { listWrittenSources } from '../../jobs/job-store.ts'
import { EvError } from '../../platform/error.ts'
import type { BulkSource, FileIdentity } from './list-source.ts'
import type { OutputFile } from './output-plan.ts'
import { resolveOutput } from './output-sink.ts'

/** Returns the identities of the regular files of an output. */
export const identifyFiles = (files: readonly OutputFile[]): FileIdentity[] =>
  files.flatMap(file => findIdentity(file) ?? [])

/**
 * Throws EvError('cannot_write') for an existing file that ev did not write, or that has changed
 * since. The database knows the files of its jobs. Of others, whose job is deleted or in another
 * data directory, and without a database,
 * those with the columns of ev are its own. An empty file has nothing to lose.
 */
export async function refuseForeignFiles(
  database: Database | null,
  files: readonly OutputFile[],
): Promise<void> {
  const existing = files.flatMap(file => {
    const identity = findIdentity(file)
    return identity === null || identity.size === 0 ? [] : [{ name: file.path, identity }]
  })
  if (existing.length === 0) return
  const known = new Map<string, FileIdentity[]>()
  for (const source of database === null ? [] : await listWrittenSources(database)) {
    const { written = [] } = JSON.parse(source) as Partial<BulkSource>
    for (const one of written) known.set(one.path, [...(known.get(one.path) ?? []), one])
  }
  for (const { name, identity } of existing) {
    const earlier = known.get(identity.path)
    const isOwn = earlier?.some(one => isSame(one, identity)) ?? (await hasOutput(identity.path))
    if (!isOwn) throw foreign(name)
  }
}

const foreign = (name: string) =>
  new EvError(
    'cannot_write',
    `${name} exists, and ev did not write it, or it has changed since. Name another file with -o, or replace it with --force.`,
  )

const isSame = (one: FileIdentity, other: FileIdentity) =>
  one.size === other.size && one.modifiedAt === other.modifiedAt

/** Returns the identity of a regular file; null if there is none. */
function findIdentity({ path: name }: OutputFile): FileIdentity | null {
  if (name === '-') return null
  const { path, isFile } = resolveOutput(name)
  if (!isFile || !existsSync(path)) return null
  const { size, mtimeMs } = statSync(path)
  return { path, size, modifiedAt: Math.floor(mtimeMs) }
}

/**
 * The start of an output: two columns that are neighbors in CSV, of this and of earlier versions, or
 * the first fields of JSON.
 */
const OUTPUT = /ev_class"?[,;\t|]"?ev_(?:action|email)|^\[?\s*\{"row":\d+,"input":\{|^\[\s*\]\s*$/

/** Bytes that a decompressed head may have; it is a fraction of this. */
const EXPANDED_BYTES_MAX = 16 * 1024 ** 2

/** Whether a file starts as an output does, in any of its formats and encodings. */
async function hasOutput(path: string): Promise<boolean> {
  try {
    const content = await openContent(path, { expandedBytesMax: EXPANDED_BYTES_MAX })
    const { head } = await readContentHead(content)
    // In UTF-16, each letter has a NUL beside it.
    return OUTPUT.test(Buffer.from(head).toString('latin1').replaceAll('\0', ''))
  } catch {
    return false
  }
}
