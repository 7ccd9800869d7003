import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { emptyDatabase } from '../support/database.ts'
import { emptyFolder } from '../support/ev-process.ts'
import {
  type Dialect,
  RELEASED_SECRET,
  readReleasedContents,
  restorePostgres,
  restoreSqlite,
} from '../support/released-database.ts'
import { beginService } from '../support/service-process.ts'

/** What the test reads of a response. */
type Answer = { readonly status: string; readonly data: { readonly items: readonly unknown[] } }

/** Prepares a data directory, and returns the arguments that select the database. */
async function restore(dialect: Dialect, home: string): Promise<string[]> {
  mkdirSync(join(home, 'data'), { recursive: true })
  if (dialect === 'sqlite') {
    restoreSqlite(join(home, 'data/ev.sqlite'))
    return []
  }
  const url = await emptyDatabase()
  await restorePostgres(url)
  return ['--database', url]
}

describe.each<Dialect>(['sqlite', 'postgres'])('a service on a %s database of 0.2.0', dialect => {
  test('has its keys, lists, results and secrets, and finishes an interrupted list', async () => {
    const contents = readReleasedContents(dialect)
    const home = emptyFolder()
    const args = await restore(dialect, home)
    const environment = { EV_SECRET: RELEASED_SECRET }
    const service = beginService(home, args, { environment })
    await service.isUp
    // A new database would print a first key.
    expect(service.key).toBe('')

    const { finishedJob, openJob, webhook } = contents
    const request = (path: string, init: RequestInit = {}, key = contents.key) =>
      fetch(`${service.url}${path}`, {
        ...init,
        headers: { Authorization: `Bearer ${key}`, 'X-EV-Sandbox': 'true', ...init.headers },
      })
    const get = async (path: string) => (await (await request(path)).json()) as Answer

    const csv = await (await request(`/v1/jobs/${finishedJob}/download`)).text()
    expect(csv).toContain('\nAnn,valid@example.com,')
    expect(csv.trim().split('\n')).toHaveLength(5)

    // Waits for at most 30 s.
    const opened = await get(`/v1/jobs/${openJob}?wait=30`)
    const ended = opened.status === 'completed' ? opened : await get(`/v1/jobs/${openJob}?wait=30`)
    expect(ended).toMatchObject({ status: 'completed', processed_emails: 2 })
    // Four of the dump, and two of the interrupted list.
    const { data: history } = await get('/v1/history')
    expect(history.items).toHaveLength(6)

    // The stored response is encrypted with the secret.
    const repeated = await request('/v1/verify/single', {
      method: 'POST',
      body: JSON.stringify({ email: 'valid@example.com' }),
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'order-7' },
    })
    expect(repeated.status).toBe(200)
    expect(repeated.headers.get('Idempotency-Replayed')).toBe('true')

    const { data: endpoint } = await get(`/v1/webhooks/${webhook}`)
    expect(endpoint).toMatchObject({ description: 'CRM', header_names: ['X-Tenant'] })
    const refused = await request('/v1/keys', {}, contents.limitedKey)
    expect(refused.status).toBe(403)

    // Features that are newer than 0.2.0.
    const again = await request(`/v1/jobs/${finishedJob}/reverify`, { method: 'POST' })
    expect(again.status).toBe(201)
    const { data: schedules } = await get('/v1/schedules')
    expect(schedules.items).toEqual([])
    expect(await service.end('SIGTERM')).toMatchObject({ code: 0 })
  })
})
