import { join } from 'node:path'
import type { Config } from '../config/settings.ts'
import { withoutPassword } from '../config/values.ts'
import { isPostgresUrl } from '../db/database-url.ts'

export type DatabaseLocation = Pick<Config, 'database' | 'dataDir'>

/** Returns the URL of the database with accounts, jobs and cached answers. */
export const databaseUrl = ({ database, dataDir }: DatabaseLocation) =>
  database === '' ? fileUrl(dataDir) : database

/** Whether the database is a PostgreSQL server, which several machines can share. */
export const isShared = (location: DatabaseLocation) => isPostgresUrl(databaseUrl(location))

/**
 * Returns the URL of the database for lists of `ev bulk`: always a local file, as the lists are.
 */
export const listsUrl = (location: DatabaseLocation) =>
  isShared(location) ? fileUrl(location.dataDir) : databaseUrl(location)

const fileUrl = (dataDir: string) => `sqlite:${join(dataDir, 'ev.sqlite')}`

/** Names the database in messages, without its password. */
export const databaseName = (location: DatabaseLocation) =>
  isShared(location) ? `the database ${withoutPassword(databaseUrl(location))}` : location.dataDir
