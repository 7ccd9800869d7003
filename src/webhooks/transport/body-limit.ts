import type { Readable } from 'node:stream'
import { TransportFault } from './transport-error.ts'

/**
 * Ends a connection by which more than so many bytes came. Limits of headers and bodies leave gaps that a receiver can
 * pour into for half a minute, and each byte of it is read: informational answers, extensions of chunks, blank lines.
 */
export function limitBodyRead(socket: Connection, bytesMax: number): void {
  socket.on('readable', () => {
    if (socket.bytesRead > bytesMax)
      socket.destroy(new TransportFault('invalid_response', TOO_MUCH))
  })
}

type Connection = Readable & { readonly bytesRead: number }

const TOO_MUCH = 'The receiver sent far more than an answer.'
