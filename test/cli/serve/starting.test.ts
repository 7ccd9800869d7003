import { expect, test } from 'vitest'
import type { CliContext } from '../../../src/cli/context.ts'
import { serverDeps } from '../../../src/cli/serve/watch-server.ts'
import type { Config } from '../../../src/config/settings.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import { fakeClock } from '../../support/clock.ts'

test('a service that is starting answers /livez, and anything else as an error of the API', async () => {
  const context = { clock: fakeClock(), random: systemRandom } as unknown as CliContext
  const config = { trustProxy: [] } as unknown as Config
  const log = { ...silentLog, close: async () => {} } as never
  const { fetch } = serverDeps({ context, config, log, headers: () => ({}) }, () => null)
  const ask = async (path: string) => fetch(new Request(`http://ev.test${path}`), {} as never)
  expect((await ask('/livez')).status).toBe(200)
  const refused = await ask('/v1/jobs')
  expect([refused.status, refused.headers.get('Retry-After')]).toEqual([503, '1'])
  expect(await refused.json()).toEqual({
    success: false,
    error: 'The service is starting. Try again.',
    code: 'service_unavailable',
    reason: 'service_starting',
    request_id: expect.stringMatching(/^req_\w+$/),
  })
})
