import { randomUUID } from 'node:crypto'
import { copyFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type SqliteDatabase from 'better-sqlite3'
import { inject, onTestFinished } from 'vitest'
import type { Database } from '../../src/db/database.ts'
import { TABLES } from '../../src/db/schema.ts'
import { createSqliteKysely, openFile, openReader, TimeSlice } from '../../src/db/sqlite.ts'
import { SteadyClock } from '../../src/db/steady-clock.ts'
import type { Clock } from '../../src/platform/clock.ts'

/** Open SQLite databases that no test uses. */
const idle: OpenFile[] = []

/**
 * Returns an empty SQLite database with reused connections and statements: opening a file and
 * preparing its statements takes longer than most tests. Work that outlives its test finds the
 * database closed.
 */
export function pooledSqlite(clock: Clock): Database {
  const open = idle.pop() ?? openCopy()
  const timeSlice = new TimeSlice(clock)
  const [writer, reader] = [borrow(open.writer), borrow(open.reader)]
  onTestFinished(() => {
    writer.giveBack()
    reader.giveBack()
    if (empty(open)) idle.push(open)
    else closeAll(open)
  })
  const db = createSqliteKysely(writer.connection, timeSlice)
  const readers = createSqliteKysely(reader.connection, timeSlice)
  return {
    db,
    reader: readers,
    asyncDb: db,
    dialect: 'sqlite',
    file: open.file,
    clock,
    steadyClock: new SteadyClock(clock, 'sqlite'),
    close: async () => {
      await readers.destroy()
      await db.destroy()
    },
  }
}

type Sqlite = SqliteDatabase.Database

type OpenFile = {
  readonly file: string
  readonly writer: Connection
  readonly reader: Connection
  /** Settings and schema of a new database. */
  readonly state: string
}

/** A connection with the statements that tests have prepared, by their text. */
type Connection = {
  readonly sqlite: Sqlite
  readonly statements: Map<string, SqliteDatabase.Statement>
}

/** Opens a copy of the template, which is deleted with it. */
function openCopy(): OpenFile {
  const template = inject('sqliteTemplate')
  const file = join(dirname(template), `${randomUUID()}.sqlite`)
  copyFileSync(template, file)
  const [writer, reader] = [openFile(file), openReader(file)].map(sqlite => ({
    sqlite,
    statements: new Map<string, SqliteDatabase.Statement>(),
  })) as [Connection, Connection]
  return { file, writer, reader, state: stateOf(writer.sqlite) }
}

/** Returns the settings of a connection and its schema version as text, to detect changes by a test. */
const stateOf = (sqlite: Sqlite): string =>
  JSON.stringify(STATE.map(name => sqlite.pragma(name, { simple: true })))

const STATE = ['schema_version', 'synchronous', 'secure_delete', 'cache_size', 'max_page_count']

/** Lends a connection until `giveBack`; then, and after `close`, it refuses all statements. */
function borrow({ sqlite, statements }: Connection) {
  let isOpen = true
  const checkOpen = () => {
    if (!isOpen) throw new TypeError('The database connection is not open')
  }
  const prepare = (text: string) => {
    checkOpen()
    const known = statements.get(text)
    if (known !== undefined) return known
    const prepared = sqlite.prepare(text)
    statements.set(text, prepared)
    return prepared
  }
  const connection = {
    prepare(text: string) {
      const statement = prepare(text)
      const run = <T>(work: () => T) => {
        checkOpen()
        return work()
      }
      return {
        reader: statement.reader,
        all: (values: unknown[]) => run(() => statement.all(values)),
        run: (values: unknown[]) => run(() => statement.run(values)),
        iterate: (values: unknown[]) => run(() => statement.iterate(values)),
      }
    },
    close() {
      isOpen = false
    },
  }
  return { connection: connection as unknown as Sqlite, giveBack: connection.close }
}

/** Deletes all rows. Returns false if the database must not be used again. */
function empty({ writer, reader, state }: OpenFile): boolean {
  try {
    if (writer.sqlite.inTransaction) writer.sqlite.exec('rollback')
    if (reader.sqlite.inTransaction || stateOf(writer.sqlite) !== state) return false
    const used = TABLES.filter(name => one(writer, `select 1 from "${name}" limit 1`) !== undefined)
    for (const name of used) writer.sqlite.exec(`delete from "${name}"`)
    return true
  } catch {
    // Another connection holds a lock, or a statement has not ended.
    return false
  }
}

function one({ sqlite, statements }: Connection, text: string): unknown {
  const statement = statements.get(text) ?? sqlite.prepare(text)
  statements.set(text, statement)
  return statement.get()
}

function closeAll({ writer, reader }: OpenFile): void {
  for (const { sqlite } of [reader, writer]) sqlite.close()
}
