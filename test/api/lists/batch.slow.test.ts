import { expect, test } from 'vitest'
import { createTestService } from '../../support/service.ts'

test('POST /v1/verify/batch accepts the largest valid body: 50,000 addresses of 254 octets', async () => {
  const { request, database } = await createTestService()
  const emails = Array.from({ length: 50_000 }, (_, n) => longest(n))
  expect(new Set(emails.map(email => email.length))).toEqual(new Set([254]))
  const response = await request('/v1/verify/batch', { body: { emails } })
  expect(response.status).toBe(200)
  const body = await response.json()
  expect(body).toMatchObject({ total_emails: 50_000, valid_emails: 50_000, duplicates: 0 })
  expect(await database.db.selectFrom('job').select('total').execute()).toEqual([{ total: 50_000 }])
})

/** 64 octets, an @, and a domain of 189. */
function longest(n: number): string {
  const local = `${n}`.padStart(64, 'x')
  const label = 'y'.repeat(60)
  return `${local}@${label}.${label}.${label}.a.test`
}
