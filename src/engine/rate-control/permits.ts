import type { ConnectionPermit } from './controller.ts'

/**
 * Takes permits one after another, so that nobody waits in a circle. Where one cannot be had, those taken before are
 * released, and what stands in its way is given.
 */
export async function startInOrder<Obstacle extends object>(
  starts: Iterable<() => Promise<{ readonly permit: ConnectionPermit } | Obstacle>>,
): Promise<{ readonly permit: ConnectionPermit } | Obstacle> {
  const permits: ConnectionPermit[] = []
  const permit = {
    release: () => {
      for (const one of permits.toReversed()) one.release()
    },
  }
  try {
    for (const start of starts) {
      const started = await start()
      if (!('permit' in started)) {
        permit.release()
        return started
      }
      permits.push(started.permit)
    }
    return { permit }
  } catch (error) {
    permit.release()
    throw error
  }
}
