import { statSync } from 'node:fs'
import { join } from 'node:path'
import { withoutPassword } from '../config/password.ts'
import type { Config } from '../config/settings.ts'
import { type Database, isPostgresUrl, openDatabase } from '../db/database.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import type { CliContext } from './context.ts'

type DatabaseLocation = Pick<Config, 'database' | 'dataDir'>

/** Where accounts, jobs and answers are kept, as a URL. */
export const databaseUrl = ({ database, dataDir }: DatabaseLocation) =>
  database === '' ? fileUrl(dataDir) : database

/** Whether that is a server, which several machines may share. */
export const isShared = (location: DatabaseLocation) => isPostgresUrl(databaseUrl(location))

/** Where lists of the command line are kept: a file of this machine, as they are files themselves. */
export const listsUrl = (location: DatabaseLocation) =>
  isShared(location) ? fileUrl(location.dataDir) : databaseUrl(location)

const fileUrl = (dataDir: string) => `sqlite:${join(dataDir, 'ev.sqlite')}`

/** The file behind a `sqlite:` URL. */
export const fileOf = (url: string) => url.replace(/^sqlite:/, '')

/** Where the service keeps what it has, for people. */
export const databaseName = (location: DatabaseLocation) =>
  isShared(location) ? `the database ${withoutPassword(databaseUrl(location))}` : location.dataDir

/** Opens the database if there is one: who only looks makes none. That of a server is there. */
export function openKept(
  context: CliContext,
  location: DatabaseLocation,
): Promise<Database | null> {
  return openIfThere(context, databaseUrl(location))
}

/** Opens the file that lists of the command line are kept in, if there is one. */
export function openLists(
  context: CliContext,
  location: DatabaseLocation,
): Promise<Database | null> {
  return openIfThere(context, listsUrl(location))
}

/** Opens what `openKept` and `openLists` do, once where they are the same; the lists come last. */
export async function openAll(
  context: CliContext,
  location: DatabaseLocation,
): Promise<Database[]> {
  const urls = [...new Set([databaseUrl(location), listsUrl(location)])]
  const opened: Database[] = []
  try {
    for (const url of urls) {
      const database = await openIfThere(context, url)
      if (database !== null) opened.push(database)
    }
    return opened
  } catch (error) {
    await closeAll(opened)
    throw error
  }
}

export async function closeAll(databases: readonly Database[]): Promise<void> {
  await Promise.all(databases.map(database => database.close()))
}

async function openIfThere(context: CliContext, url: string): Promise<Database | null> {
  return isPostgresUrl(url) || isThere(fileOf(url)) ? openDatabase(url, context.clock) : null
}

/** What may not be looked at is not told as if it were not there: that of a service is for its user alone. */
function isThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined
  } catch (cause) {
    throw new EvError(
      'io',
      `The database ${file} cannot be looked at: ${errorMessage(cause)}. Do this as the user who runs ev there, or name another place with --data-dir.`,
      { cause },
    )
  }
}
