import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { contentsOf, copyFile } from '../../src/maintenance/copy-file.ts'
import { addAccount } from '../support/account-rows.ts'
import { addJob, tempDatabase, tempFolder } from '../support/database.ts'
import { addWebhook } from '../support/webhook-rows.ts'

test('a copy of a file is complete while another process writes to it', async () => {
  const folder = tempFolder()
  const file = join(folder, 'ev.sqlite')
  const database = await tempDatabase({ file })
  await addAccount(database, 'acc_a')
  await addWebhook(database)
  await addJob(database, ['a@x.test', 'b@x.test'], 'job_a')
  const copy = join(folder, 'copy.sqlite')
  copyFile(`sqlite:${file}`, copy)
  await addJob(database, ['c@x.test'], 'job_b')
  expect(contentsOf(copy)).toEqual({
    accounts: 1,
    keys: 0,
    webhooks: 1,
    lists: 1,
    rows: 2,
    verifications: 0,
    answers: 0,
  })
})

test.each(['postgres://ev:secret@db.example/ev', 'postgresql://db.example/ev?sslmode=require'])(
  'a PostgreSQL database is refused with an alternative: %s',
  url => {
    const copy = join(tempFolder(), 'copy.sqlite')
    expect(() => copyFile(url, copy)).toThrow(/PostgreSQL database cannot be copied.*pg_dump/)
    expect(() => copyFile(url, copy)).not.toThrow('secret')
    expect(existsSync(copy)).toBe(false)
  },
)

test('a copy that is damaged or missing is reported', () => {
  const file = join(tempFolder(), 'copy.sqlite')
  expect(() => contentsOf(file)).toThrow('is damaged: it does not exist')
  writeFileSync(file, 'no database'.repeat(100))
  expect(() => contentsOf(file)).toThrow('is damaged')
})
