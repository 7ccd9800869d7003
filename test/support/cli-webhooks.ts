import { join } from 'node:path'
import { type Database, openDatabase } from '../../src/db/database.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { addAccount } from './account-rows.ts'
import { emptyFolder, type Ran, runEv } from './cli.ts'

/** Runs `ev` in a folder, without network access. */
export const ev = (home: string, ...args: string[]): Promise<Ran> =>
  runEv([...args, '--data-dir', 'data'], { home, offline: true })

export const read = async (home: string, ...args: string[]) =>
  JSON.parse((await ev(home, ...args, '--json')).stdout)

/** Allows connections to this machine. */
export const HERE = ['--webhook-allow-ranges', '127.0.0.1'] as const

/** Creates a folder whose database has accounts with these IDs. */
export async function homeWith(...accounts: string[]): Promise<string> {
  const home = emptyFolder()
  await inDatabase(home, async database => {
    for (const id of accounts) await addAccount(database, id)
  })
  return home
}

export async function inDatabase<T>(
  home: string,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const database = await openDatabase(`sqlite:${join(home, 'data/ev.sqlite')}`, systemClock)
  return work(database).finally(() => database.close())
}
