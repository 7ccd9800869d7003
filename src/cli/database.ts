import { COMMAND_LINE } from '../audit.ts'
import { activeMembers } from '../cluster/membership.ts'
import type { MemberRole } from '../cluster/tables.ts'
import { type Database, openDatabase } from '../db/database.ts'
import { fileOf, isPostgresUrl } from '../db/database-url.ts'
import { databaseLock, isLocked, SERVE_LOCK } from '../db/file-lock.ts'
import { pathExists } from '../platform/directory.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import type { CliContext } from './context.ts'
import { type DatabaseLocation, databaseUrl, listsUrl } from './database-location.ts'

/** Opens the database if it exists; a command that only reads must not create a file. */
export function openExisting(
  context: CliContext,
  location: DatabaseLocation,
): Promise<Database | null> {
  return openIfThere(context, databaseUrl(location))
}

/** Opens the database for lists of `ev bulk` if it exists. */
export function openListDatabase(
  context: CliContext,
  location: DatabaseLocation,
): Promise<Database | null> {
  return openIfThere(context, listsUrl(location))
}

/** Opens the databases of `openExisting` and `openListDatabase`, once if they are the same. */
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

/**
 * Throws EvError if the file is not accessible, as for another user's service, rather than false.
 */
function isThere(file: string): boolean {
  try {
    return pathExists(file)
  } catch (cause) {
    throw new EvError(
      'io',
      `The database ${file} cannot be accessed: ${errorMessage(cause)}. Run the command as the user that runs ev there, or set another directory with --data-dir.`,
      { cause },
    )
  }
}

/**
 * Whether a service is running on a database: for SQLite, on its file or in the data directory; for
 * PostgreSQL, on any machine. With PostgreSQL, `ev worker` processes jobs too.
 */
export async function isServed(
  database: Database,
  { dataDir }: { readonly dataDir: string },
  roles: readonly MemberRole[] = ['serve', 'worker'],
): Promise<boolean> {
  if (database.file !== null) {
    return isLocked(...databaseLock(database.file)) || isLocked(dataDir, SERVE_LOCK)
  }
  return (await activeMembers(database)).some(({ role }) => roles.includes(role))
}

/** The dependencies of use cases that write to the audit log. */
export const auditServices = ({ clock, random }: CliContext) => ({
  clock,
  random,
  origin: COMMAND_LINE,
})
