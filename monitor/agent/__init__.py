"""What runs beside the training: follows tapes, samples the host and GPU, notices deaths and stalls."""
