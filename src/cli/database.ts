import { statSync } from 'node:fs'
import { join } from 'node:path'
import { EvError, errorMessage } from '../base/error.ts'
import { withoutPassword } from '../config/password.ts'
import type { Config } from '../config/settings.ts'
import { type Database, isPostgresUrl, openDatabase } from '../store/database.ts'
import type { CliContext } from './context.ts'

type Place = Pick<Config, 'database' | 'dataDir'>

/** Where accounts, jobs and answers are kept, as a URL. */
export const databaseUrl = ({ database, dataDir }: Place) =>
  database === '' ? fileUrl(dataDir) : database

/** Whether that is a server, which several machines may share. */
export const isShared = (place: Place) => isPostgresUrl(databaseUrl(place))

/** Where lists of the command line are kept: a file of this machine, as they are files themselves. */
export const listsUrl = (place: Place) =>
  isShared(place) ? fileUrl(place.dataDir) : databaseUrl(place)

const fileUrl = (dataDir: string) => `sqlite:${join(dataDir, 'ev.sqlite')}`

/** The file behind a `sqlite:` URL. */
export const fileOf = (url: string) => url.replace(/^sqlite:/, '')

/** Where the service keeps what it has, for people. */
export const placeName = (place: Place) =>
  isShared(place) ? `the database ${withoutPassword(databaseUrl(place))}` : place.dataDir

/** Opens the database if there is one: who only looks makes none. That of a server is there. */
export function openKept(context: CliContext, place: Place): Promise<Database | null> {
  return openIfThere(context, databaseUrl(place))
}

/** Opens the file that lists of the command line are kept in, if there is one. */
export function openLists(context: CliContext, place: Place): Promise<Database | null> {
  return openIfThere(context, listsUrl(place))
}

/** Opens what `openKept` and `openLists` do, once where they are the same; the lists come last. */
export async function openAll(context: CliContext, place: Place): Promise<Database[]> {
  const urls = [...new Set([databaseUrl(place), listsUrl(place)])]
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
