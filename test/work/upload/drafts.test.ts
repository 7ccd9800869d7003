import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { MINUTE } from '../../../src/base/clock.ts'
import {
  clearDrafts,
  DRAFT_MS,
  DRAFTS_MAX,
  openDrafts,
  sweepDrafts,
} from '../../../src/work/upload/drafts.ts'
import { storeBody } from '../../../src/work/upload/store-bytes.ts'
import { fakeClock } from '../../support/clock.ts'
import { tempFolder } from '../../support/database.ts'
import { countedRandom } from '../../support/random.ts'

function house() {
  const dataDir = tempFolder()
  const clock = fakeClock()
  const drafts = openDrafts(dataDir, { clock, random: countedRandom() })
  const folder = join(dataDir, 'drafts')
  const add = (accountId = 'acc_1', text = 'a@a.test\n') =>
    drafts.add(accountId, async path => {
      const body = new Response(text).body
      const size = await storeBody(
        { body, headers: new Headers(), signal: new AbortController().signal },
        path,
        1_000,
      )
      return { name: 'March', sandbox: false, size }
    })
  const left = () => (existsSync(folder) ? readdirSync(folder).toSorted() : [])
  return { dataDir, clock, drafts, folder, add, left }
}

test('a draft is a file that only we may read, found by its account alone', async () => {
  const { drafts, folder, add, left } = house()
  const draft = await add()
  expect(draft).toMatchObject({ accountId: 'acc_1', name: 'March', size: 9, jobId: null })
  expect(readFileSync(drafts.pathOf(draft), 'utf8')).toBe('a@a.test\n')
  expect(left()).toEqual([draft.id, `${draft.id}.json`])
  for (const name of left()) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  expect(await drafts.find('acc_1', draft.id)).toEqual(draft)
  expect(await drafts.find('acc_2', draft.id)).toBeNull()
})

test('nothing but a draft is found, whatever is asked for', async () => {
  const { dataDir, drafts, add } = house()
  const { id } = await add()
  const own = { id: 'x', accountId: 'acc_1', at: 0, jobId: null }
  writeFileSync(join(dataDir, 'secret.json'), JSON.stringify(own))
  for (const asked of [
    '../secret',
    `${id}/../${id}`,
    `${id}.json`,
    '',
    `${id}x`,
    '%2e%2e/secret',
  ]) {
    expect([asked, await drafts.find('acc_1', asked)]).toEqual([asked, null])
  }
})

test('a file that does not come leaves nothing behind', async () => {
  const { drafts, left } = house()
  const failing = drafts.add('acc_1', async path => {
    await writeFile(path, 'half of it')
    throw new Error('broken off')
  })
  await expect(failing).rejects.toThrow('broken off')
  expect(left()).toEqual([])
})

test('after an hour it is not found, and is removed with the next one that comes', async () => {
  const { clock, drafts, add, left } = house()
  const old = await add()
  await clock.advance(DRAFT_MS - 1)
  expect(await drafts.find('acc_1', old.id)).toEqual(old)
  await clock.advance(1)
  expect(await drafts.find('acc_1', old.id)).toBeNull()
  const { id } = await add()
  expect(left()).toEqual([id, `${id}.json`])
})

test('who looks after the house removes what is old, also where the clock was set back', async () => {
  const { dataDir, clock, add, left } = house()
  await add()
  expect(await sweepDrafts(dataDir, clock.now() + DRAFT_MS - 1)).toBe(0)
  expect(await sweepDrafts(dataDir, clock.now() - DRAFT_MS)).toBe(1)
  expect(left()).toEqual([])
  expect(await sweepDrafts(tempFolder(), 0)).toBe(0)
})

test('an account has five, and the oldest goes; that of another stays', async () => {
  const { clock, drafts, add } = house()
  const other = await add('acc_2')
  const own = []
  for (let n = 0; n <= DRAFTS_MAX; n++) {
    await clock.advance(MINUTE)
    own.push(await add())
  }
  const found = await Promise.all(own.map(({ id }) => drafts.find('acc_1', id)))
  expect(found.map(one => one !== null)).toEqual([false, true, true, true, true, true])
  expect(existsSync(drafts.pathOf(own[0] as (typeof own)[0]))).toBe(false)
  expect(await drafts.find('acc_2', other.id)).not.toBeNull()
})

test('one that became a job has no file any more, and tells which job it is', async () => {
  const { drafts, add, left } = house()
  const draft = await add()
  await drafts.becameJob(draft, 'job_1')
  expect(left()).toEqual([`${draft.id}.json`])
  expect(await drafts.find('acc_1', draft.id)).toMatchObject({ jobId: 'job_1' })
})

test('a process that starts finds none', async () => {
  const { dataDir, add, left } = house()
  await add()
  clearDrafts(dataDir)
  clearDrafts(dataDir)
  expect(left()).toEqual([])
})

test('where the folder cannot be written to, that is said', async () => {
  const { dataDir, drafts } = house()
  writeFileSync(join(dataDir, 'drafts'), 'a file in its place')
  await expect(drafts.add('acc_1', () => Promise.reject())).rejects.toMatchObject({
    kind: 'not-stored',
  })
})
