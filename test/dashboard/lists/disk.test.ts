import { describe, expect, test } from 'vitest'
import { createListsDashboard } from './room.ts'

const SENTENCE =
  'The disk of the service is almost full. New lists are refused until space is freed. Everything else works.'

const onDisk = (isLow: boolean) =>
  createListsDashboard({ deps: { disk: async () => ({ freeBytes: 3e6, isLow }) } })

describe('low disk space', () => {
  test('is reported on the list pages only', async () => {
    const { get } = await onDisk(true)
    for (const path of ['/lists', '/lists/new']) expect((await get(path)).text).toContain(SENTENCE)
    expect((await get('/usage')).text).not.toContain(SENTENCE)
    expect((await (await onDisk(false)).get('/lists')).text).not.toContain(SENTENCE)
  })

  test('is reported to an admin on every page, with the free space', async () => {
    const { get, database } = await onDisk(true)
    await database.db.updateTable('account').set({ operator: 1 }).execute()
    for (const path of ['/overview', '/lists', '/usage', '/doctor']) {
      expect((await get(path)).text).toContain(`${SENTENCE} 3 MB left: free up space on the disk`)
    }
  })

  test('rejects uploads by script and by form', async () => {
    const { preview, start, send, left } = await onDisk(true)
    const list = 'email\nann@a.test\n'
    for (const sent of [await preview(list), await start(list)]) {
      expect([sent.status, sent.text]).toEqual([507, expect.stringContaining(SENTENCE)])
    }
    const form = await send(list)
    expect([form.status, await form.text()]).toEqual([507, expect.stringContaining(SENTENCE)])
    expect(left()).toEqual([])
  })
})
