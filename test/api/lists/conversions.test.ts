import { gzipSync } from 'node:zlib'
import type { Context } from 'hono'
import { expect, test } from 'vitest'
import type { Env } from '../../../src/api/context.ts'
import { textUploads } from '../../../src/api/lists/upload.ts'
import { waitUntil } from '../../support/wait.ts'
import { storeFile } from '../../support/workbook.ts'

test('an account converts one file at a time, so that others do not wait behind all of its files', async () => {
  const withText = textUploads()
  const running: string[] = []
  const ends: (() => void)[] = []
  const send = (accountId: string) => {
    const path = storeFile(gzipSync('email\nann@a.test\n'))
    const c = { get: () => ({ account: { id: accountId } }) } as unknown as Context<Env>
    const upload = { path, fileName: 'list.csv.gz', options: {} as never }
    return withText(c, upload, async () => {
      running.push(accountId)
      await new Promise<void>(end => ends.push(end))
    })
  }
  const sent = [send('acc_a'), send('acc_a'), send('acc_a')]
  await waitUntil(() => running.length === 1)
  sent.push(send('acc_b'))
  await waitUntil(() => running.length === 2)
  expect(running).toEqual(['acc_a', 'acc_b'])
  for (let n = 0; n < sent.length; n++) {
    await waitUntil(() => ends.length > n)
    ends[n]?.()
  }
  await Promise.all(sent)
  expect(running).toEqual(['acc_a', 'acc_b', 'acc_a', 'acc_a'])
})
