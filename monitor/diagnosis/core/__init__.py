"""What every diagnosis needs: window, findings and their life, the verdict, and the doctor that asks all."""
