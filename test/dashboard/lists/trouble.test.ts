import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { listRoutes } from '../../../src/dashboard/lists/lists.ts'
import { seedJob } from '../../support/job-rows.ts'
import { EVIL, EVIL_SHOWN, listsHouse } from './room.ts'

describe('sending lists', () => {
  test('is for eight at the same time; who comes then is asked to come again', async () => {
    const { fetch, csrf, send, left } = await listsHouse()
    const headers = {
      ...{ 'Content-Type': 'application/octet-stream', 'X-CSRF-Token': await csrf() },
    }
    const bodies = Array.from({ length: 8 }, () => new TransformStream<Uint8Array, Uint8Array>())
    const sent = bodies.map(({ readable: body }) => {
      const init = { method: 'POST', headers, body, duplex: 'half' }
      return fetch('/lists/drafts', init as RequestInit)
    })
    await expect.poll(() => left().length).toBe(8)
    expect((await send('email\nann@a.test\n')).status).toBe(429)
    for (const { writable } of bodies) {
      const writer = writable.getWriter()
      await writer.write(Buffer.from('email\nann@a.test\n'))
      await writer.close()
    }
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual(Array(8).fill(201))
    expect((await send('email\nann@a.test\n')).status).toBe(201)
  })
})

describe('a service that starts anew', () => {
  test('has no drafts of the one before', async () => {
    const house = await listsHouse()
    const path = await house.draft('email\nann@a.test\n')
    listRoutes(house.service as never)
    expect(house.left()).toEqual([])
    expect((await house.get(path)).status).toBe(404)
  })

  test('makes no second job of a draft of which one was made, though nobody noted it', async () => {
    const { draft, post, service, json } = await listsHouse()
    const path = await draft('email\nann@a.test\n')
    const folder = join(service.settings.dataDir, 'drafts')
    const files = readdirSync(folder).map(name => [name, readFileSync(join(folder, name))] as const)
    const start = () => post(`${path}/start`, { column: '1', header: 'true' })
    const first = (await start()).headers.get('Location')
    for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes)
    expect((await start()).headers.get('Location')).toBe(first)
    expect(await json('/v1/jobs')).toMatchObject({ data: { items: [expect.anything()] } })
  })
})

test('an address with markup is shown as text among the rows', async () => {
  const { database, get } = await listsHouse()
  await seedJob(database, { texts: [`"${EVIL}"@a.example`] })
  const { text } = await get('/lists/job_a')
  expect(text).toContain(EVIL_SHOWN)
  expect(text).not.toContain(EVIL)
})
