import type { RateController } from '../../src/engine/rate-control/controller.ts'

/** Asks for a permit without waiting for one. */
export function startNow(controller: RateController, single = false) {
  const start = controller.start(0, AbortSignal.abort(), single)
  if ('then' in start) throw new Error('the state is shared, so the answer takes time')
  return start
}
