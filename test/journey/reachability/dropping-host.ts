import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'

/** An address of the loopback that lets connections wait for ever, as a firewall does that drops port 25. */
export type DroppingHost = { readonly ip: string; readonly port: number; close(): void }

/**
 * A process that listens and accepts nobody: once its queue is full the kernel drops every SYN. Resolves when it
 * does so. Linux.
 */
export async function startDroppingHost(ip = '127.99.0.1'): Promise<DroppingHost> {
  const child = spawn(process.execPath, ['-e', LISTEN, ip], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = await once(child.stdout, 'data')
  const port = Number(said)
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

/** Stands still as soon as it listens, so that nothing is ever taken from the queue. */
const LISTEN = `
  const server = require('node:net').createServer()
  server.listen({ host: process.argv[1], port: 0, backlog: 1 }, () => {
    require('node:fs').writeSync(1, String(server.address().port))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })`

/** On the loopback a connection is there at once or not before the next SYN. */
const opens = (socket: Socket) =>
  Promise.race([once(socket, 'connect').then(() => true), setTimeout(500, false)])
