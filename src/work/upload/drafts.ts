import { rmSync } from 'node:fs'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, HOUR } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import { notStored } from './fault.ts'
import { makeFolder } from './store-bytes.ts'

/** A file that somebody looks at before it becomes a list. */
export type Draft = About & {
  /** `drf_…` */
  readonly id: string
  readonly accountId: string
  /** When it came, epoch ms. */
  readonly at: number
  /** The job that it became, whereupon its file is gone; null: none yet. */
  readonly jobId: string | null
}

/** What is known of a file when it has come. */
export type About = {
  /** What the list is to be called. */
  readonly name: string
  readonly sandbox: boolean
  /** Bytes. */
  readonly size: number
}

/** Files in a folder of the data directory, each with what is known of it in a small one beside it. */
export interface Drafts {
  /** Has a file stored under the path that `receive` is given; what that throws leaves nothing behind. */
  add(accountId: string, receive: (path: string) => Promise<About>): Promise<Draft>
  /** Null: there is none, or it is another account's, or too old. */
  find(accountId: string, id: string): Promise<Draft | null>
  /** Where the file of a draft lies. */
  pathOf(draft: Draft): string
  /** It has become a job: who asks for it again can be told which. */
  becameJob(draft: Draft, jobId: string): Promise<void>
  remove(draft: Draft): Promise<void>
}

/** Who looks at a list decides within minutes; addresses should not lie around. */
export const DRAFT_MS = HOUR
/** Of an account: 500 MiB at most. */
export const DRAFTS_MAX = 5

export function openDrafts(
  dataDir: string,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Drafts {
  const folder = folderOf(dataDir)
  const pathOf = ({ id }: Pick<Draft, 'id'>) => join(folder, id)
  const write = (draft: Draft) => writeBeside(pathOf(draft), draft)
  const remove = (draft: Pick<Draft, 'id'>) => removeFiles(pathOf(draft))
  return {
    ...{ pathOf, remove },
    async add(accountId, receive) {
      makeFolder(folder)
      await sweepDrafts(dataDir, clock.now())
      const id = `drf_${random.token(ID_LENGTH)}`
      try {
        const about = await receive(pathOf({ id }))
        const draft = { id, accountId, ...about, at: clock.now(), jobId: null }
        await write(draft)
        await keepNewest(folder, accountId)
        return draft
      } catch (error) {
        await remove({ id })
        throw error
      }
    },
    async find(accountId, id) {
      const draft = IS_ID.test(id) ? await readBeside(pathOf({ id })) : null
      if (draft === null || isOld(draft, clock.now())) return null
      return draft.accountId === accountId ? draft : null
    },
    async becameJob(draft, jobId) {
      await write({ ...draft, jobId })
      await rm(pathOf(draft), { force: true })
    },
  }
}

/** Removes what a process before this one left; call it before there are any. */
export function clearDrafts(dataDir: string): void {
  rmSync(folderOf(dataDir), { recursive: true, force: true })
}

/** Removes those that nobody has come back to, and gives their number. */
export async function sweepDrafts(dataDir: string, now: number): Promise<number> {
  const folder = folderOf(dataDir)
  const old = (await all(folder)).filter(draft => isOld(draft, now))
  for (const { id } of old) await removeFiles(join(folder, id))
  return old.length
}

/** 103 bits of chance. */
const ID_LENGTH = 20
const IS_ID = new RegExp(`^drf_[a-z0-9]{${ID_LENGTH}}$`)

const folderOf = (dataDir: string) => join(dataDir, 'drafts')

/** A clock that was set back makes none last for ever. */
const isOld = ({ at }: Draft, now: number) => Math.abs(now - at) >= DRAFT_MS

async function keepNewest(folder: string, accountId: string): Promise<void> {
  const own = (await all(folder)).filter(draft => draft.accountId === accountId)
  const tooMany = own.toSorted((a, b) => b.at - a.at).slice(DRAFTS_MAX)
  for (const { id } of tooMany) await removeFiles(join(folder, id))
}

async function all(folder: string): Promise<Draft[]> {
  const names = await readdir(folder).catch(() => [])
  const beside = names.filter(name => name.endsWith(BESIDE))
  const drafts = beside.map(name => readBeside(join(folder, name.slice(0, -BESIDE.length))))
  return (await Promise.all(drafts)).filter(draft => draft !== null)
}

const BESIDE = '.json'

/** Whole or not at all. */
async function writeBeside(path: string, draft: Draft): Promise<void> {
  try {
    await writeFile(`${path}.new`, JSON.stringify(draft), { mode: 0o600 })
    await rename(`${path}.new`, `${path}${BESIDE}`)
  } catch (error) {
    throw notStored(error)
  }
}

async function readBeside(path: string): Promise<Draft | null> {
  try {
    return JSON.parse(await readFile(`${path}${BESIDE}`, 'utf8')) as Draft
  } catch {
    // It has just been removed, or never was.
    return null
  }
}

async function removeFiles(path: string): Promise<void> {
  for (const end of [BESIDE, '.new', '']) await rm(`${path}${end}`, { force: true })
}
