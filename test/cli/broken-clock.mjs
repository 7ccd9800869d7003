// Preloaded by tests: a fault of our own, as soon as anything asks for the time.
performance.now = () => {
  throw new TypeError('the clock has stopped')
}
