// Sends one request to a URL and prints the result: for tests that need a process of their own.

import { createIpPolicy } from '../../../src/engine/smtp/dial-policy.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { createHttpsTransport } from '../../../src/webhooks/https-transport.ts'
import { zone } from '../../support/zone.ts'

const [, , url = '', ca = ''] = process.argv
const post = createHttpsTransport({
  clock: systemClock,
  resolver: zone({ 'hook.example': { A: ['127.0.0.1'] } }),
  mayDial: createIpPolicy(['127.0.0.1']),
  ...(ca === '' ? {} : { ca }),
})
process.stdout.write(JSON.stringify(await post.send({ url, headers: {}, body: '{}' })))
await post.close()
