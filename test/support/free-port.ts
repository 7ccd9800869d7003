import { freePort } from '../real/server.ts'

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
