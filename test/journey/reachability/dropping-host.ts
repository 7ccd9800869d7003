import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'

/** A loopback address that drops connections, like a firewall that drops port 25. */
export type DroppingHost = { readonly ip: string; readonly port: number; close(): void }

/**
 * Starts a process that listens but accepts no connection. Once its queue is full, the kernel drops
 * every SYN; the promise then resolves. Linux only.
 */
export async function startDroppingHost(ip = '127.99.0.1'): Promise<DroppingHost> {
  const child = spawn(process.execPath, ['-e', LISTEN, ip], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output] = await once(child.stdout, 'data')
  const port = Number(output)
  const queue: Socket[] = []
  do queue.push(connect({ host: ip, port }).on('error', () => {}))
  while (await opens(queue.at(-1) as Socket))
  return {
    ip,
    port,
    close() {
      for (const socket of queue) socket.destroy()
      child.kill('SIGKILL')
    },
  }
}

/** Blocks the event loop as soon as it listens, so no connection is ever accepted. */
const LISTEN = `
  const server = require('node:net').createServer()
  server.listen({ host: process.argv[1], port: 0, backlog: 1 }, () => {
    require('node:fs').writeSync(1, String(server.address().port))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })`

/** On loopback a connection opens at once, or not before the next SYN. */
const opens = (socket: Socket) =>
  Promise.race([once(socket, 'connect').then(() => true), setTimeout(500, false)])
