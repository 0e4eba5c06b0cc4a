/* ST's independent watchdog: its own 32 kHz oscillator, one way on, reset without an interrupt. */
#ifndef ODT_STM32_IWDG_H
#define ODT_STM32_IWDG_H

void stm32_iwdg_start(void);
void stm32_iwdg_feed(void);

#endif
