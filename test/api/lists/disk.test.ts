import { describe, expect, test } from 'vitest'
import { diskReader } from '../../../src/jobs/upload/store-upload.ts'
import { codeOf, limitOf } from '../../support/guarded-route.ts'
import { createUploadService } from '../../support/list-form.ts'
import { recordingLog } from '../../support/log.ts'
import { createWiredService } from '../../support/wired-service.ts'

const MIN = 500e6
const LISTS: [path: string, body: object][] = [
  ['/v1/verify/bulk', { emails: ['valid@a.test'] }],
  ['/v1/verify/batch', { emails: ['valid@a.test'] }],
]

/** A service on a disk whose free space is set by the test. */
async function services() {
  const disk: { freeBytes: number | null } = { freeBytes: 5e9 }
  const { log, lines } = recordingLog()
  const asked: string[] = []
  const read = diskReader({
    ...{ dataDir: '/data', minBytes: MIN, log },
    async freeBytes(folder) {
      asked.push(folder)
      if (disk.freeBytes === null) throw new Error('EIO')
      return disk.freeBytes
    },
  })
  return { ...(await createUploadService({ deps: { disk: read } })), disk, logged: lines, asked }
}

describe('on a disk with less free space than the setting', () => {
  test.each(LISTS)('%s is refused with 507, live and in the sandbox', async (path, body) => {
    const { request, disk, database, asked } = await services()
    disk.freeBytes = MIN - 1
    for (const headers of [{}, { 'X-EV-Sandbox': 'true' }]) {
      const answer = await request(path, { body, headers })
      expect(answer.status).toBe(507)
      expect(answer.headers.get('Retry-After')).toBe('60')
      expect(await answer.json()).toMatchObject({
        code: 'insufficient_storage',
        error:
          'The disk of the service is almost full. New lists are refused until space is freed. Everything else works.',
      })
    }
    expect(await database.db.selectFrom('job').select('id').execute()).toEqual([])
    expect(asked).toEqual(['/data', '/data'])
    disk.freeBytes = MIN
    expect((await request(path, { body })).status).toBe(200)
  })

  test('a file is refused before it is stored, also with dry_run', async () => {
    const { upload, disk, left } = await services()
    disk.freeBytes = 0
    const fields: Readonly<Record<string, string>>[] = [{}, { dry_run: 'true' }]
    for (const field of fields) {
      const answer = await upload('email\nvalid@a.test\n', field)
      expect([answer.status, await codeOf(answer)]).toEqual([507, 'insufficient_storage'])
    }
    expect(left()).toEqual([])
  })

  test('a refusal does not count against the ten lists an hour', async () => {
    const { request, disk } = await services()
    const body = { emails: ['valid@a.test'] }
    disk.freeBytes = 0
    for (let n = 0; n < 12; n++) {
      const answer = await request('/v1/verify/batch', { body })
      expect(answer.status).toBe(507)
      expect(limitOf(answer).limit).toBe(500)
    }
    disk.freeBytes = MIN
    expect((await request('/v1/verify/batch', { body })).status).toBe(200)
  })

  test('a response under an Idempotency-Key is repeated', async () => {
    const { request, disk } = await services()
    const o = { body: { emails: ['valid@a.test'] }, headers: { 'Idempotency-Key': 'once' } }
    const first = await (await request('/v1/verify/batch', o)).json()
    disk.freeBytes = 0
    const again = await request('/v1/verify/batch', o)
    expect([again.status, await again.json()]).toEqual([200, first])
  })

  test('single verifications work, and lists can be read and deleted', async () => {
    const { request, json, disk } = await services()
    const { job_id } = await json('/v1/verify/batch', { body: { emails: ['valid@a.test'] } })
    disk.freeBytes = 0
    expect(await json('/v1/verify/single', { body: { email: 'ann@a.test' } })).toMatchObject({
      reason: 'accepted_email',
    })
    expect((await request(`/v1/jobs/${job_id}`)).status).toBe(200)
    expect((await request(`/v1/jobs/${job_id}`, { method: 'DELETE' })).status).toBe(204)
  })

  test('readiness, health and metrics say so, and the service stays ready', async () => {
    const { json, request, disk, logged } = await services()
    const metric = async () => {
      const text = await (await request('/metrics', { ip: '127.0.0.1' })).text()
      return /^ev_disk_low \d$/m.exec(text)?.[0]
    }
    expect(await json('/readyz')).toEqual({ status: 'ok', disk: 'ok' })
    expect(await json('/health')).toMatchObject({ status: 'ok', disk: 'ok' })
    expect(await metric()).toBe('ev_disk_low 0')
    disk.freeBytes = MIN - 1
    const ready = await request('/readyz')
    expect([ready.status, await ready.json()]).toEqual([200, { status: 'ok', disk: 'low' }])
    expect(await json('/health')).toMatchObject({ status: 'failing', disk: 'low' })
    expect(await metric()).toBe('ev_disk_low 1')
    // Logged once at the start and once at the end.
    expect(logged.map(({ level }) => level)).toEqual(['error'])
    disk.freeBytes = MIN
    expect(await json('/readyz')).toEqual({ status: 'ok', disk: 'ok' })
    expect(logged.map(({ level }) => level)).toEqual(['error', 'info'])
  })
})

test.each([
  [499_999_999, 507],
  [500_000_000, 200],
])('by default, with %d bytes free a list is answered with %d', async (free, status) => {
  const { key, fetch } = await createWiredService({ freeBytes: async () => free })
  const answer = await fetch('https://ev.example.com/v1/verify/batch', {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ emails: ['valid@a.test'] }),
  })
  expect(answer.status).toBe(status)
})

test('if the free space is unknown nothing is refused', async () => {
  const { request, json, disk } = await services()
  disk.freeBytes = null
  const answer = await request('/v1/verify/batch', { body: { emails: ['valid@a.test'] } })
  expect(answer.status).toBe(200)
  expect(await json('/readyz')).toEqual({ status: 'ok', disk: 'ok' })
})
