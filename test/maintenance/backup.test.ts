import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../src/db/database.ts'
import { backup } from '../../src/maintenance/backup.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { addAccount } from '../support/account-rows.ts'
import { tempFolder } from '../support/database.ts'

async function withDatabase() {
  const folder = tempFolder()
  const database = join(folder, 'ev.sqlite')
  const opened = await openDatabase(`sqlite:${database}`, systemClock)
  await addAccount(opened)
  await opened.close()
  mkdirSync(join(folder, 'copies'))
  const file = join(folder, 'copies/copy')
  const input = {
    databaseUrl: `sqlite:${database}`,
    file,
    force: false,
    encryption: null,
    secret: null,
  }
  const copies = () => readdirSync(join(folder, 'copies'))
  return { folder, database, file, copies, input }
}

const NEVER = new AbortController().signal

const refused = (code: string, facts: object) => expect.objectContaining({ code, facts })

test('a copy reports its row counts, and is readable only by its owner', async () => {
  const { input, file, database, copies } = await withDatabase()
  expect(await backup(input, NEVER)).toMatchObject({
    file,
    database,
    contents: { accounts: 1, keys: 0 },
    bytes: statSync(file).size,
  })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(copies()).toEqual(['copy'])
})

test('an existing file is replaced only with force', async () => {
  const { input, file, copies } = await withDatabase()
  writeFileSync(file, 'mine')
  await expect(backup(input, NEVER)).rejects.toThrow(refused('backup_exists', { file }))
  expect(readFileSync(file, 'utf8')).toBe('mine')
  await backup({ ...input, force: true }, NEVER)
  expect(readFileSync(file, 'latin1').startsWith('SQLite format 3')).toBe(true)
  expect(copies()).toEqual(['copy'])
})

test('a database is not copied onto itself, even with force', async () => {
  const { input, database } = await withDatabase()
  await expect(backup({ ...input, file: database, force: true }, NEVER)).rejects.toThrow(
    refused('backup_of_itself', { file: database }),
  )
})

test('a missing or invalid database or a full disk leaves no copy', async () => {
  const { folder, input, copies } = await withDatabase()
  const absent = join(folder, 'none.sqlite')
  await expect(backup({ ...input, databaseUrl: `sqlite:${absent}` }, NEVER)).rejects.toThrow(
    refused('database_absent', { file: absent, task: 'backup' }),
  )
  const broken = join(folder, 'broken.sqlite')
  writeFileSync(broken, 'no database at all'.repeat(100))
  await expect(backup({ ...input, databaseUrl: `sqlite:${broken}` }, NEVER)).rejects.toThrow(
    refused('database_unusable', { file: broken, why: expect.any(String) }),
  )
  const file = join(folder, 'nowhere/copy')
  await expect(backup({ ...input, file }, NEVER)).rejects.toThrow(
    refused('backup_failed', { file, why: expect.stringContaining('no such file') }),
  )
  expect(copies()).toEqual([])
})
