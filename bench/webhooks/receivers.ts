// The endpoints: an HTTPS server for each, which counts requests and stores nothing.
import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { DAY } from '../../src/platform/clock.ts'
import { systemRandom as random } from '../../src/platform/random.ts'
import { certify, makeAuthority } from '../../test/support/certificate.ts'
import { percentile } from '../engine/figures.ts'
import { type EndpointKind, kindOfEndpoint, type Received, SLOW_MS } from './plan.ts'
import { answer } from './process.ts'

type Endpoint = {
  readonly kind: EndpointKind
  readonly events: Set<string>
  requests: number
  connections: number
  connectionsPeak: number
}

const SETTLED_MS = 50

const endpoints = Array.from({ length: Number(process.argv[2]) }, (_, n): Endpoint => {
  const none = { requests: 0, connections: 0, connectionsPeak: 0 }
  return { kind: kindOfEndpoint(n), events: new Set(), ...none }
})
const healthy = endpoints.filter(({ kind }) => kind === 'healthy')
let latenciesMs: number[] = []
let [firstAt, lastAt] = [0, 0]

const now = Date.now()
const authority = makeAuthority({ name: 'bench', now, days: 1, random })
const identity = certify(authority, {
  names: ['127.0.0.1'],
  notBefore: now - DAY,
  notAfter: now + DAY,
  random,
})
const urls = await Promise.all(endpoints.map(listen))
answer({
  targets: () => ({ urls, ca: authority.cert }),
  arrived,
  figures,
  reset,
})

async function listen(endpoint: Endpoint): Promise<string> {
  const server = serverOf(endpoint).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
}

function serverOf(endpoint: Endpoint): Server {
  const server = createServer({ ...identity, keepAliveTimeout: 60_000 }, (request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', text => {
      body += text
    })
    request.on('end', () => {
      recordRequest(endpoint, body)
      if (endpoint.kind === 'dead') return
      const end = () => response.writeHead(204).end()
      if (endpoint.kind === 'slow') setTimeout(end, SLOW_MS)
      else end()
    })
  })
  server.on('connection', socket => {
    endpoint.connections++
    socket.on('close', () => endpoint.connections--)
    // A new connection may be accepted before the one that it replaces is closed.
    setTimeout(() => {
      endpoint.connectionsPeak = Math.max(endpoint.connectionsPeak, endpoint.connections)
    }, SETTLED_MS)
  })
  return server
}

function recordRequest(endpoint: Endpoint, body: string): void {
  const { event_id, timestamp } = JSON.parse(body) as { event_id: string; timestamp: string }
  endpoint.requests++
  endpoint.events.add(event_id)
  if (endpoint.kind !== 'healthy') return
  lastAt = Date.now()
  if (firstAt === 0) firstAt = lastAt
  latenciesMs.push(lastAt - Date.parse(timestamp))
}

/** Returns the number of distinct events, summed over the healthy endpoints. */
function arrived(): number {
  return healthy.reduce((sum, { events }) => sum + events.size, 0)
}

function figures(): Received {
  const most = (kind: EndpointKind) =>
    Math.max(...endpoints.filter(one => one.kind === kind).map(one => one.connectionsPeak))
  const latency = (share: number) => percentile(latenciesMs, share)
  return {
    events: arrived(),
    repeated: healthy.reduce((sum, { requests, events }) => sum + requests - events.size, 0),
    latencyMs: { p50: latency(0.5), p95: latency(0.95), p99: latency(0.99) },
    seconds: (lastAt - firstAt) / 1_000,
    connectionsPeak: { dead: most('dead'), slow: most('slow'), healthy: most('healthy') },
  }
}

/** Resets the counters for the next run; connections of the last one are closed by then. */
function reset(): void {
  latenciesMs = []
  firstAt = lastAt = 0
  for (const endpoint of endpoints) {
    endpoint.events.clear()
    endpoint.requests = 0
    endpoint.connectionsPeak = endpoint.connections
  }
}
