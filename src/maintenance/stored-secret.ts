import SqliteDatabase from 'better-sqlite3'

/** The table that holds the secret of the service in an encrypted backup, and nowhere else. */
const TABLE = 'ev_backup_secret'

/** Stores the secret of the service in a copy of the database that will be encrypted. */
export function storeSecret(file: string, secret: string): void {
  withFile(file, sqlite => {
    sqlite.exec(`create table ${TABLE} (secret text not null) strict`)
    sqlite.prepare(`insert into ${TABLE} values (?)`).run(secret)
  })
}

/** Returns the secret in a copy and removes it from there; null if it has none. */
export function takeSecret(file: string): string | null {
  return withFile(file, sqlite => {
    const find = sqlite.prepare("select 1 from sqlite_master where type = 'table' and name = ?")
    if (find.get(TABLE) === undefined) return null
    const secret = sqlite.prepare(`select secret from ${TABLE}`).pluck().get() as string
    // Without this, the pages that held the secret would keep it.
    sqlite.pragma('secure_delete = on')
    sqlite.exec(`drop table ${TABLE}`)
    return secret
  })
}

function withFile<T>(file: string, use: (sqlite: SqliteDatabase.Database) => T): T {
  const sqlite = new SqliteDatabase(file)
  try {
    return use(sqlite)
  } finally {
    sqlite.close()
  }
}
