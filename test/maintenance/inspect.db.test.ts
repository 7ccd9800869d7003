import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { inspectDatabase } from '../../src/maintenance/inspect.ts'
import { tempDatabase, tempFolder } from '../support/database.ts'

const inspect = (file: string) => inspectDatabase(`sqlite:${file}`)

function written(...statements: string[]): string {
  const file = join(tempFolder(), 'ev.sqlite')
  const sqlite = new SqliteDatabase(file)
  for (const statement of statements) sqlite.exec(statement)
  sqlite.close()
  return file
}

describe('inspecting a database', () => {
  test('creates none', () => {
    const folder = tempFolder()
    expect(inspect(join(folder, 'ev.sqlite'))).toMatchObject({ kind: 'absent' })
    expect(readdirSync(folder)).toEqual([])
  })

  test('finds it usable, in use and afterwards, and changes nothing', async () => {
    const file = join(tempFolder(), 'ev.sqlite')
    const database = await tempDatabase({ file })
    expect(inspect(file)).toEqual({ kind: 'usable', file })
    await database.close()
    const { mtimeMs, size } = statSync(file)
    expect(inspect(file)).toEqual({ kind: 'usable', file })
    expect(statSync(file)).toMatchObject({ mtimeMs, size })
  })

  test('detects a newer version, an early development version, another program and damage', () => {
    const newer = written(
      'create table kysely_migration (name text)',
      "insert into kysely_migration values ('9999_later')",
    )
    expect(inspect(newer)).toMatchObject({ kind: 'newer' })
    const early = written(
      'create table kysely_migration (name text)',
      "insert into kysely_migration values ('0001_lists')",
    )
    expect(inspect(early)).toMatchObject({
      kind: 'unusable',
      why: expect.stringMatching(/^a development version of ev created it/),
    })
    expect(inspect(written('create table bookmarks (id text)'))).toMatchObject({
      kind: 'unusable',
      why: 'it belongs to another program',
    })
    const damaged = join(tempFolder(), 'ev.sqlite')
    writeFileSync(damaged, 'no database'.repeat(100))
    expect(inspect(damaged)).toMatchObject({ kind: 'unusable', why: 'file is not a database' })
  })
})
