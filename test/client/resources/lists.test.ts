import { expect, test } from 'vitest'
import { createInProcessClient } from '../../support/in-process-client.ts'
import { createTestService } from '../../support/service.ts'

const LIST = 'name,email\nAnn,ann@a.test\nBob,bob@a.test\nAnn,ann@a.test\n'

test('a file can be previewed repeatedly before it is sent', async () => {
  const { client } = createInProcessClient(await createTestService(), { lose: 1 })
  for (let n = 0; n < 11; n++) {
    expect(await client.preview(LIST)).toMatchObject({
      dry_run: true,
      column: 'email',
      column_number: 2,
      rows: 3,
      duplicates: 1,
      credits_needed: 2,
      preview: [['Ann', 'ann@a.test'], ['Bob', 'bob@a.test'], {}],
    })
  }
  expect(await client.preview(LIST, { column: 'name', deduplicate: false })).toMatchObject({
    column_number: 1,
    valid_emails: 0,
    duplicates: 0,
  })
  expect((await client.jobs.list().page()).items).toEqual([])
  expect(await client.file(LIST)).toMatchObject({ status: 'queued', duplicates: 1 })
})
