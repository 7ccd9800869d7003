import { describe, expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'

/** Opens the event stream of a list. */
async function openStream() {
  const services = await createTestDashboard()
  const id = await services.submit(['valid@a.example', 'valid@b.example'])
  const answer = await services.fetch(`/lists/${id}/events`)
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  /** Returns the next event while time passes; null at the end. */
  const next = async () => {
    const nextEvent = reader.read().then(
      ({ value }) => (value === undefined ? null : new TextDecoder().decode(value)),
      () => null,
    )
    return services.settled(nextEvent)
  }
  await next()
  expect(await next()).toContain('event: progress')
  return { services, reader, next }
}

describe('an event stream', () => {
  test('lasts as long as the session', async () => {
    const { services, next, reader } = await openStream()
    const before = services.clock.now()
    while (services.clock.now() - before < MINUTE) expect(await next()).not.toBeNull()
    await reader.cancel()
  })

  test('ends when the session is ended elsewhere or its key is revoked', async () => {
    for (const end of [
      async (services: TestDashboard) => void (await services.post('/sign-out')),
      async (services: TestDashboard) =>
        void (await services.request('/v1/keys/key_1?force=true', { method: 'DELETE' })),
    ]) {
      const { services, next } = await openStream()
      await end(services)
      const before = services.clock.now()
      while ((await next()) !== null) expect(services.clock.now() - before).toBeLessThan(MINUTE)
      expect(services.clock.now() - before).toBeLessThanOrEqual(15 * SECOND)
    }
  })
})

type TestDashboard = Awaited<ReturnType<typeof createTestDashboard>>
