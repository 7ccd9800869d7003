// The least that a server in Node can do under overload: refuses each request. Prints its port.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** As in the service. */
const BACKLOG = 4_096

const BODY = JSON.stringify({ success: false, error: 'busy', code: 'service_unavailable' })
const HEADERS = {
  'content-type': 'application/json',
  'content-length': BODY.length,
  'retry-after': '1',
}

const server = createServer((_, response) => {
  response.writeHead(503, HEADERS)
  response.end(BODY)
})
server.listen({ host: '127.0.0.1', port: 0, backlog: BACKLOG }, () => {
  console.log((server.address() as AddressInfo).port)
})
