import { onTestFinished } from 'vitest'

/**
 * Fails the test if the API refuses an unknown field or parameter: our own clients must not send
 * one.
 */
export function failOnUnknownNames<Args extends unknown[]>(
  ask: (...args: Args) => Response | Promise<Response>,
): (...args: Args) => Promise<Response> {
  const refused: string[] = []
  onTestFinished(() => {
    if (refused.length > 0) throw new Error(`Sent to the API, which refused it: ${refused[0]}`)
  })
  return async (...args) => {
    const response = await ask(...args)
    if (response.status === 400) {
      const text = await response.clone().text()
      if (/ is not a known (field|parameter)\./.test(text)) refused.push(text)
    }
    return response
  }
}
