import { expect, test } from 'vitest'
import { createUploadService } from '../../support/list-form.ts'

test('a file of more than a million rows is refused', async () => {
  const { upload } = await createUploadService()
  const refused = await upload('a@b.co\n'.repeat(1_000_001), { dry_run: 'true' })
  expect(refused.status).toBe(400)
  expect(await refused.json()).toMatchObject({
    code: 'too_many_emails',
    error: 'The file has more than 1,000,000 rows, which is the maximum. Split it.',
  })
})
