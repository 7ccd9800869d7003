import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * By default the kernel of no system gives these ports to outgoing connections or to listeners at
 * port 0, which could take a port between its choice and its use.
 */
const PORTS = { from: 10_000, to: 32_767 }
const TRIES_MAX = 100

/** Returns a port that is free at all IPv4 addresses. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = randomInt(PORTS.from, PORTS.to)
    if (await isFree(port, '0.0.0.0')) return port
  }
  throw new Error(`None of ${TRIES_MAX} ports is free.`)
}

/** Whether nothing listens at a port of an address. */
export async function isFree(port: number, address: string): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, address), 'listening')
    server.close()
    await once(server, 'close')
    return true
  } catch {
    return false
  }
}

/**
 * Opens listeners at several addresses with the same port. A port that is free at one address may
 * be taken at another, so `open` runs with other ports until it succeeds.
 */
export async function withFreePort<T>(open: (port: number) => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await open(await freePort())
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'EADDRINUSE') throw error
    }
  }
}
