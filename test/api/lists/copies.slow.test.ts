import { expect, test } from 'vitest'
import { createUploadService } from '../../support/list-form.ts'

test('a list is refused if a row for each address would copy too much text', async () => {
  const { upload, job } = await createUploadService()
  const addresses = Array.from({ length: 10_000 }, (_, i) => `a${i}@a.test`).join(' ')
  const list = `name,email\n${'x'.repeat(60_000)},${addresses}\n`
  const response = await upload(list, { all_addresses: 'true' })
  expect([response.status, await response.json()]).toMatchObject([
    413,
    { code: 'payload_too_large', error: expect.stringContaining('all_addresses to false') },
  ])
  expect(await job()).toBeUndefined()
})
